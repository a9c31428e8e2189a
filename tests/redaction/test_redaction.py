"""Secrets: tables of texts, command lines and pairs, with what is shown of each; a person's own; and long texts."""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.redaction import (
    HIDDEN,
    OwnSecrets,
    hide_secret_value,
    hide_secrets,
    redact_pairs,
    redact_text,
    use_own_secrets,
)
from tests.patience import patience
from tests.support.tables import read_table

FOLDER = Path(__file__).parent
TEXTS = read_table(FOLDER / "texts.tsv")
NAMES = st.sampled_from(
    [
        *("token", "hf_token", "hfToken", "HF_TOKEN", "wandb.api_key", "WANDB_API_KEY", "apikey", "db-password"),
        *("MYSQL_PWD", "client_secret", "aws-secret-access-key", "auth", "credentials", "passphrase", "private_key"),
    ]
)
SECRETS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=8, max_size=40).filter(
    lambda text: not text.startswith("-") and text.strip() == text and "***" not in text
)
WORDS = st.text("ABCDEFGHIJabcdefghij0123456789", min_size=8, max_size=30)


@pytest.fixture(autouse=True)
def _own() -> Iterator[None]:
    yield
    use_own_secrets(OwnSecrets())


def said(command: list[str]) -> str:
    return "\n".join(hide_secrets(command))


def test_texts_pairs_and_command_lines() -> None:
    for kind, text, *secrets in TEXTS:
        words = shlex.split(text.replace("\\n", "\n")) if "words" in kind else []
        if kind == "words":
            shown = said(words)
        elif kind == "words stay":
            assert hide_secrets(words) == tuple(words)
        else:
            shown = redact_text(f"note {text} here" if kind == "weak" else text)
            assert redact_text(shown) == shown
        if kind == "stays":
            assert shown == text
        elif kind == "host":
            assert shown == f"{HIDDEN}@{text.partition('@')[2]}"
        for secret in secrets:
            assert (secret in shown, HIDDEN in shown) == (False, True), text
            assert kind != "weak" or secret not in redact_pairs([("note", text)])[0][1], text
    for password in ("1234", "postgres", "iou50"):
        for host in ("db.intern", "db:5432", "10.0.0.7", "[::1]:80", "db.example.com:5432/x"):
            assert redact_text(f"root:{password}@{host}") == f"{HIDDEN}@{host}"


@given(NAMES, SECRETS)
def test_values_of_options_and_variables(name: str, secret: str) -> None:
    commands: list[list[str]] = [
        ["python", "train.py", f"--{name}", secret, "--lr", "1"],
        ["python", "train.py", f"--{name}={secret}"],
        ["python", "train.py", f"++{name}={secret}"],
        ["env", f"{name}={secret}", "python", "train.py"],
        ["curl", "-H", f"{name}: {secret}"],
        ["python", "train.py", json.dumps({"lr": 1, name: secret}, ensure_ascii=False)],
        ["python", "train.py", json.dumps({"cfg": {name: secret, "lr": 1}}, ensure_ascii=False)],
    ]
    scripts = (["train", f"--{name}", secret, "--lr", "1"], ["export", f"{name}={secret}"])
    commands += [["bash", "-c", f"cd /data && {shlex.join(inner)}; ls -l"] for inner in scripts]
    for command in commands:
        assert secret not in said(command), command
        assert HIDDEN in said(command), command


@given(WORDS, WORDS)
def test_forms_that_need_no_name(secret: str, user: str) -> None:
    assert secret not in said(["run", f"https://{user}:{secret}@host/path", "x"]).replace(user, "")
    for words in (
        ["--header", f"Authorization: Bearer {secret}"],
        ["-u", f"name:{secret}"],
        [f"hf_{secret}", f"sk-{secret}", f"see ghp_{secret}, glpat-{secret}"],
    ):
        assert secret not in said(["run", *words])


def test_own_names_and_patterns() -> None:
    use_own_secrets(OwnSecrets(names=("vault_id", "*_pin", "lane*code"), patterns=("corp-", "acme*key*", "*@intern")))
    for kind, text, *more in read_table(FOLDER / "own.tsv"):
        if kind == "name":
            assert redact_pairs([(text, "4711")]) == ((text, HIDDEN),)
            assert "4711" not in redact_text(f"see {text}=4711 and {text.strip('-')} = '4711'")
            option = f"--{text.rpartition('/')[2].strip('-')}"
            assert "4711" not in said(["run", option, "4711", f'{{"{text}": "4711"}}'])
        elif kind == "other name":
            assert redact_pairs([(text, "4711")]) == ((text, "4711"),)
        else:
            assert [redact_text(text)] == more


def test_patterns_and_sets_of_secrets() -> None:
    use_own_secrets(OwnSecrets(patterns=("corp-",)))
    assert redact_text("corp-77") == HIDDEN
    use_own_secrets(OwnSecrets(names=("key",), patterns=("lane-", "4711*")))
    assert (redact_text("corp-77"), redact_text("lane-77"), redact_text("key: word")) == ("corp-77", HIDDEN, "key: ***")
    assert redact_pairs([("badge", "47110815"), ("lr", "0.001")]) == (("badge", HIDDEN), ("lr", "0.001"))
    use_own_secrets(OwnSecrets(names=("a*" * 40 + "c",), patterns=("a*" * 40 + "c",)))
    word = "a" * 50_000
    with patience(15):
        assert redact_text(f"{word} {word}b") == f"{word} {word}b"
        assert redact_pairs([(word, "1")]) == ((word, "1"),)


@pytest.mark.slow
def test_a_long_line_does_not_hang() -> None:
    """15 s of the processor for 100,000 letters are hopeless: its square takes minutes."""
    for unit in (json.loads(text) for (text,) in read_table(FOLDER / "endless.tsv")):
        line = unit * (100_000 // len(unit))
        functions: tuple[Callable[[str], object], ...] = (
            lambda text: redact_text(f"{text}!"),
            lambda text: redact_pairs([("note", text), (text, "1")]),
            lambda text: hide_secrets([text, *text.split(" ")]),
            lambda text: hide_secret_value("note", f'"{text}'),
        )
        for function in functions:
            with patience(15):
                function(line)
