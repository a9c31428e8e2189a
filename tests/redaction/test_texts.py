"""Secrets in any text: what is replaced, what stays, and that long texts take no longer than their length."""

from typing import TYPE_CHECKING

import pytest

from gpureport.redaction import HIDDEN, hide_secret_value, hide_secrets, redact_pairs, redact_text
from gpureport.report.runs.network_names import find_named_machines, hide_addresses
from tests.patience import patience

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    "text",
    [
        *("password: hunter2x", "X-Api-Key: hunter2x", "token: hunter2x9", "Cookie: sid=hunter2x; b=hunter2x"),
        *("Authorization: Custom hunter2x", "  'db_password' : 'hunter2x'", '{"token": "hunter2x', "token='hunter2x"),
        *('{\\"token\\": \\"hunter2x\\"}', "url=https://h/x?token=hunter2x"),
        *("key: 0123456789abcdefhunter2x0123456789ABCDEF", "ssh_key: x9hunter2x"),
        *("a=b=token=hunter2x", "password = hunter2x"),
        *('environ["TOKEN"] = "hunter2x"', "user[password]=hunter2x", "train.py --hf-token hunter2x --lr 1"),
        *("me:hunter2x@node-7", "--host=me:hunter2x@10.0.0.7:9100", "redis://:hunter2x@h/0", "s3://a/hunter2x:b@c"),
        *("x://me:hun/ter2x@h".replace("hun/ter2x", "p/hunter2x"), "nvapi-hunter2xx", "hvs.hunter2xx", "_sk-hunter2xx"),
    ],
)
def test_ways_a_text_holds_a_secret(text: str) -> None:
    """After its name, in an address, or by its own form."""
    shown = redact_text(text)
    assert "hunter2x" not in shown
    assert HIDDEN in shown
    assert redact_text(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        *("disk-usage-monitor", "task-scheduler-long", "unknown key: word", "pass: 5 of 6 checks", "basic training"),
        *("the key is long: see below", "max_tokens=2048", "pytorch:2.1@sha256:0123abcd", "ann@example.com", "a:b"),
        *("s3://bucket/train:1", "http://localhost:8080/x", "recall:mean@10"),
        *("time per token: 0.0123456", "ms/token: 12.3456789", "missing key: gpu_0_utilization", "monkey: banana12345"),
        *("primary key: run_2024", "turkey=banana12345", "tokens: 12345678", "hockey: true"),
        *("mAP:50@person", "mAP:75@person", "mAP:50-95@car", "AP:iou50@val/car", "recall:macro@person", "top:5@k"),
        *("map:0.5@iou50", "precision:macro@k", "val_mAP50:95@car", "hits:10@test", "acc:mean@fold3", "cuda:0@node-7"),
        *("psnr:mean@val", "mse:mean@k", "perplexity:avg@val", "wer:0.5@test", "nll:mean@fold3", "ssim:0.9@img"),
        *("kl:max@k", "ppl:100@step", "val_mae:min@fold1", "cer:mean@val", "val_AP:50@person", "F1:macro@val"),
        *("per token: 0.0123456789", "cost per token: 0.012345678901234567", "ms/token: 0.01234567890123"),
        *("total token: 1500000000", "seen token: 15000000000", "Processed token: 1.5e+12", "num token: 4200000000"),
        *("API key: required", "Invalid API key: check line 4", "public key: run_2024", "cache key: step_20240101"),
        *("FLOPs per token: 123456789012", "flops/token: 123456789012", "tokens: 300000000000", "ssh key: 4096"),
        *(
            "secret santa: 2024-12-24",
            "access point: lab-12-west",
            "private key: 2048 bits",
            "token: 12345678",
            "access key: missing",
        ),
        *("key: mean", "2026-03-14T09:00:00.1@gpu0"),
        *("GPU 0: 80 %", "log.csv:3: token ring", "gpureport.toml:4: unknown key 'lr' in [rules]", "a == b", "x => y"),
    ],
)
def test_sentences_stay(text: str) -> None:
    """Words that only resemble a secret."""
    assert redact_text(text) == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        *(("root:letmein@dbhost", "letmein"), ("postgres:secret@db", "secret"), ("ann:1234@gpu7", "1234")),
        *(("admin:Swordfish@node-7", "Swordfish"), ("db=root:mean@dbhost", "mean"), ("map:letmein@db", "letmein")),
        *(("api key: 4f9d8a7b6c5e", "4f9d8a7b6c5e"), ("API key: hunter2x9abc", "hunter2x9abc")),
        *(("wandb key: local-12ab34cd56ef", "local-12ab34cd56ef"), ("my API key: hunter2", "hunter2")),
        *(("licence key: ABCD-1234-EFGH-5678", "ABCD-1234-EFGH-5678"), ("License Key: AB12-CD34", "AB12-CD34")),
        *(("token: 123456789012", "123456789012"), ("wandb key: 123456789012", "123456789012")),
        *(("api key: " + "abcdef" * 6, "abcdef"), ("wandb key: " + "abcdef" * 6, "abcdef")),
        *(("access token: hunter2x9", "hunter2x9"), ("admin password: hunter", "hunter")),
        *(("ann_f:1234@gpu7", "1234"), ("dev-map:1234@db", "1234"), ("hr:1234@db", "1234"), ("step:99@db", "99")),
        *(("ar:100@dbhost", "100"), ("ann-lr:1234@prod", "1234"), ("loss:0@node-7", ":0"), ("map:1@db/x", ":1")),
        *(("total token: 12345678901234567890", "1234567"), ("seen token: hunter2x9", "hunter2x9")),
        *(("auth token: 123456789012", "123456789012"), ("total/token: 12345678901234567890", "1234567")),
        *(("per token: hunter2x9", "hunter2x9"), ("a/token: hunter2x9", "hunter2x9")),
    ],
)
def test_weak_secrets(text: str, secret: str) -> None:
    """Passwords that are words or numbers, and keys that only the word before tells, in texts and in params."""
    shown = redact_text(f"note {text} here")
    assert secret not in shown
    assert HIDDEN in shown
    assert redact_text(shown) == shown
    assert secret not in redact_pairs([("note", text)])[0][1]


@pytest.mark.parametrize("host", ["db.intern", "db:5432", "10.0.0.7", "[::1]:80", "db.example.com:5432/x"])
@pytest.mark.parametrize("password", ["1234", "postgres", "iou50"])
def test_a_weak_password_before_a_machine(password: str, host: str) -> None:
    """What is plainly a machine has users, whatever their passwords."""
    assert redact_text(f"root:{password}@{host}") == f"{HIDDEN}@{host}"


_UNITS = (
    *("a=", "://", "@", "-", ":", "a", "A1b", "://a:", "://@", "a:", "Bearer "),
    *("Basic a ", "'", '"', "\\", '"a":', "'a':"),
    *('"a":{', "[", "{", "eyJ", "sk-", "-----BEGIN", "sig=", "=", ",", "a.b-"),
    *(" ", "\n", "a =", '"a":"', "key=", "--key "),
    *("token:", "f0", "/", "a_", "_", "é", "\t", "a b=", "://a:b @ ", "a:a@"),
    *("=a:", "key: ", "@a", 'token="', "Cookie:"),
    *("host=", "a-", "a.a:", "::1 ", "a.com.", "1.", "00:", "node="),
    *('\\"a\\":\\"', "'token': ", "max_token=", '"token":', "token=,", "token:a ", "password=\n", "$(", "a:b@h"),
)
_LETTERS = 100_000
_HANG = 15
"""Seconds of the processor after which a text of so many letters is hopeless: its square takes minutes."""


@pytest.mark.slow
@pytest.mark.parametrize("unit", _UNITS)
def test_a_long_line_does_not_hang(unit: str) -> None:
    """The same letters again and again: names, quotes and addresses that never end."""
    line = unit * (_LETTERS // len(unit))
    functions: tuple[Callable[[], object], ...] = (
        lambda: redact_text(f"{line}!"),
        lambda: redact_pairs([("note", line), (line, "1")]),
        lambda: hide_secrets([line, *line.split(" ")]),
        lambda: hide_secret_value("note", f'"{line}'),
        lambda: hide_addresses(f"{line}!"),
        lambda: list(find_named_machines(f"{line}!")),
    )
    for function in functions:
        with patience(_HANG):
            function()
