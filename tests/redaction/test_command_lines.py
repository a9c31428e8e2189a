"""Secrets of a command line: none is written down, whatever way it was given; settings stay readable."""

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.record_folder import RecordedRun, format_run_file, parse_run_file
from gpureport.recorder.job_params import read_settings
from gpureport.redaction import HIDDEN, hide_secrets

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


def _written(command: list[str]) -> str:
    run = RecordedRun(command=hide_secrets(command), started=0, params=tuple(read_settings(command)))
    again = parse_run_file(format_run_file(run))
    assert again is not None
    return "\n".join([*again.command, *(value for _, value in again.params)])


@given(NAMES, SECRETS)
def test_values_of_options_and_variables(name: str, secret: str) -> None:
    """A value is hidden whether a blank, an equals sign or a colon is before it."""
    commands: list[list[str]] = [
        ["python", "train.py", f"--{name}", secret, "--lr", "1"],
        ["python", "train.py", f"--{name}={secret}"],
        ["python", "train.py", f"++{name}={secret}"],
        ["env", f"{name}={secret}", "python", "train.py"],
        ["curl", "-H", f"{name}: {secret}"],
        ["python", "train.py", json.dumps({"lr": 1, name: secret}, ensure_ascii=False)],
        ["python", "train.py", json.dumps({"cfg": {name: secret, "lr": 1}}, ensure_ascii=False)],
    ]
    for command in commands:
        written = _written(command)
        assert secret not in written, command
        assert HIDDEN in written


@given(NAMES, SECRETS)
def test_scripts(name: str, secret: str) -> None:
    """A script is one word of the command line, with commands in it."""
    for inner in (["train", f"--{name}", secret, "--lr", "1"], ["export", f"{name}={secret}"]):
        assert secret not in _written(["bash", "-c", f"cd /data && {shlex.join(inner)}; ls -l"])


@given(WORDS, WORDS)
def test_forms_that_need_no_name(secret: str, user: str) -> None:
    """Users of URLs, and tokens that show what they are by how they begin."""
    assert secret not in _written(["run", f"https://{user}:{secret}@host/path", "x"]).replace(user, "")
    assert secret not in _written(["run", "--header", f"Authorization: Bearer {secret}"])
    assert secret not in _written(["run", "-u", f"name:{secret}"])
    assert secret not in _written(["run", f"hf_{secret}", f"sk-{secret}", f"see ghp_{secret}, glpat-{secret}"])


@pytest.mark.parametrize(
    "secret",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "0123456789abcdef0123456789abcdef01234567",
        "eyJhcGlfYWRkcmVzcyI6Imh0dHBzOi8vYXBwIn0=",
        "s3kBv0YwQ1rTz9uXnE5mL7pKc2HdJf4G",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_keys_without_a_name(secret: str) -> None:
    """Words that nobody types by hand."""
    assert secret not in _written(["wandb", "login", secret])
    assert "abc\n" not in _written(["wandb", "login", secret])


@pytest.mark.parametrize(
    "command",
    [
        ["x", '--json={"auth": {"user": "abcd"}, "lr": 1}'],
        ["x", '{"a": {"b": {"pass": "abcd"}}, "tokens": ["abcd", "abcd"]}'],
        ["x", "--token", "-abcd"],
        ["x", "--url", "https://host/c?sv=1&sig=abcd%3D"],
        ["bash", "-c", "curl -H 'X-Api-Key: abcd' -u me:abcd http://h"],
        ["bash", "-lc", "export WANDB_API_KEY=abcd; python train.py"],
    ],
)
def test_ways_people_pass_secrets(command: list[str]) -> None:
    """Nested settings, addresses with a signature, headers."""
    assert "abcd" not in _written(command)


def test_settings_stay() -> None:
    """Nothing else is touched."""
    command = (
        *("torchrun", "--nproc_per_node=4", "/opt/train.py", "--max-tokens", "2048", "--tokenizer", "gpt2"),
        *("--key_dim=64", "--lr", "3e-4", "--data", "s3://bucket/train:1", "optimizer=adamw", "--authors", "a,b"),
        *("--revision", "0123456789abcdef0123456789abcdef01234567", "echo a && ls 'b c'"),
    )
    assert hide_secrets(command) == command
    assert hide_secrets(["--amp", "--hf-token", "--lr", "1"]) == ("--amp", "--hf-token", "--lr", "1")
