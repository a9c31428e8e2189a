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

TEXTS = read_table(Path(__file__).with_name("texts.tsv"))
WEAK = [(text, secret) for kind, text, *more in TEXTS if kind == "weak" for secret in more]
"""Passwords that are words or numbers, and keys that only the word before tells."""
COMMANDS: tuple[tuple[list[str], str], ...] = (
    (["x", '--json={"auth": {"user": "abcd"}, "lr": 1}'], "abcd"),
    (["x", '{"a": {"b": {"pass": "abcd"}}, "tokens": ["abcd", "abcd"]}'], "abcd"),
    (["x", '{"token": "abcd'], "abcd"),
    (["x", "--token", "-abcd"], "abcd"),
    (["x", "--url", "https://host/c?sv=1&sig=abcd%3D"], "abcd"),
    (["bash", "-c", "curl -H 'X-Api-Key: abcd' -u me:abcd http://h"], "abcd"),
    (["bash", "-lc", "export WANDB_API_KEY=abcd; python train.py"], "abcd"),
    *(
        (["wandb", "login", key], key.splitlines()[-1 if "\n" not in key else 1])
        for key in (
            *("AKIAIOSFODNN7EXAMPLE", "0123456789abcdef0123456789abcdef01234567", "s3kBv0YwQ1rTz9uXnE5mL7pKc2HdJf4G"),
            *(
                "eyJhcGlfYWRkcmVzcyI6Imh0dHBzOi8vYXBwIn0=",
                "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
            ),
        )
    ),
)
SETTINGS = (
    *("torchrun", "--nproc_per_node=4", "/opt/train.py", "--max-tokens", "2048", "--tokenizer", "gpt2"),
    *("--key_dim=64", "--lr", "3e-4", "--data", "s3://bucket/train:1", "optimizer=adamw", "--authors", "a,b"),
    *("--revision", "0123456789abcdef0123456789abcdef01234567", "echo a && ls 'b c'"),
)
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
UNITS = (
    *("a=", "://", "@", "-", ":", "a", "A1b", "://a:", "://@", "a:", "Bearer ", "Basic a ", "'", '"', "\\", '"a":'),
    *("'a':", '"a":{', "[", "{", "eyJ", "sk-", "-----BEGIN", "sig=", "=", ",", "a.b-", " ", "\n", "a =", '"a":"'),
    *("key=", "--key ", "token:", "f0", "/", "a_", "_", "é", "\t", "a b=", "://a:b @ ", "a:a@", "=a:", "key: ", "@a"),
    *('token="', "Cookie:", "host=", "a-", "a.a:", "::1 ", "a.com.", "1.", "00:", "node=", '\\"a\\":\\"', "'token': "),
    *("max_token=", '"token":', "token=,", "token:a ", "password=\n", "$(", "a:b@h"),
)
"""Names, quotes and addresses that never end when they are written again and again."""


@pytest.fixture(autouse=True)
def _own() -> Iterator[None]:
    yield
    use_own_secrets(OwnSecrets())


def said(command: list[str]) -> str:
    return "\n".join(hide_secrets(command))


def test_texts() -> None:
    for kind, text, *secrets in TEXTS:
        if kind == "stays":
            assert redact_text(text) == text
        elif kind == "host":
            assert redact_text(text) == f"{HIDDEN}@{text.partition('@')[2]}"
        for secret in secrets:
            shown = redact_text(f"note {text} here" if kind == "weak" else text)
            assert (secret in shown, HIDDEN in shown, redact_text(shown)) == (False, True, shown), text
    for password in ("1234", "postgres", "iou50"):
        for host in ("db.intern", "db:5432", "10.0.0.7", "[::1]:80", "db.example.com:5432/x"):
            assert redact_text(f"root:{password}@{host}") == f"{HIDDEN}@{host}"


def test_pairs_and_command_lines() -> None:
    for text, secret in WEAK:
        assert secret not in redact_pairs([("note", text)])[0][1], text
    for command, secret in COMMANDS:
        assert secret not in said(command), command
    assert hide_secrets(SETTINGS) == SETTINGS
    assert hide_secrets(["--amp", "--hf-token", "--lr", "1"]) == ("--amp", "--hf-token", "--lr", "1")


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
    for name in (
        "vault_id",
        "Vault-ID",
        "cfg.vault_id",
        "params/door_pin",
        "lane_7_code",
        "--vault-id",
        "pad_token_pin",
    ):
        assert redact_pairs([(name, "4711")]) == ((name, HIDDEN),)
        assert "4711" not in redact_text(f"see {name}=4711 and {name.strip('-')} = '4711'")
        option = f"--{name.rpartition('/')[2].strip('-')}"
        assert "4711" not in said(["run", option, "4711", f'{{"{name}": "4711"}}'])
    for name in ("vault", "vault_id_count", "door_pinned", "code", "lane"):
        assert redact_pairs([(name, "4711")]) == ((name, "4711"),)
    for text, shown in {
        "see corp-77x, then": f"see {HIDDEN}, then",
        "https://h/corp-77/x?y=1 z": f"https://h/{HIDDEN} z",
        "xcorp-77 and MyCorp-7": "xcorp-77 and MyCorp-7",
        "acme-1-key-2 acme-1": f"{HIDDEN} acme-1",
        "me@intern.example me@extern": f"{HIDDEN} me@extern",
    }.items():
        assert redact_text(text) == shown


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
    for unit in UNITS:
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
