"""Secrets planted in every text a source can hold: no output of any command shows one."""

from pathlib import Path

import pytest

from gpureport.redaction import HIDDEN, redact_pairs
from tests.cli.planted_secrets import SHAPES, Exits, Planter
from tests.cli.program import Program
from tests.importers.trackers.mlflow.stores import START, Made, database, monitored, run_id
from tests.importers.written_logs import log

_NAMES = ("api_key", "wandb.api_key", "HF_TOKEN", "db.password", "aws_secret_access_key", "neptune_api_token", "passwd")


def _secret(place: int) -> str:
    return f"QZ{place:02d}W7K3M9T5R1X8"


def _shaped(place: int) -> str:
    return SHAPES[place % len(SHAPES)].format(_secret(place))


@pytest.fixture
def tracker(tmp_path: Path) -> Path:
    """A database of MLflow with a secret in params, tags, names, user and note."""
    params = {name: _secret(place) for place, name in enumerate(_NAMES)}
    params |= {f"setting{place}": _shaped(place) for place in range(10, 34)}
    tags = {f"label{place}": _shaped(place) for place in range(34, 50)}
    tags |= {"mlflow.note.content": f"see {_shaped(50)}", "mlflow.user": _shaped(51), "mlflow.source.name": _shaped(52)}
    ticks = [10_050 * (place + 1) for place in range(60)]
    made = [
        Made(
            id=run_id(number),
            name=f"run{number} {_shaped(53 + number)}",
            series=monitored(ticks),
            end=START + 610_000,
            params=params,
            tags=tags,
        )
        for number in (1, 2)
    ]
    return database(tmp_path / "mlflow.db", made)


_REPORT = ("--format", "json")
_COMMANDS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (0, ("ingest", "{db}")),
    (0, ("-v", "ingest", "log.csv", "--tag", "api_key=" + _secret(56), "--name", "a " + _shaped(57))),
    (3, ("ingest", "mlflow:http://me:" + _secret(58) + "@127.0.0.1:9/?token=" + _secret(59))),
    (3, ("--debug", "analyze", "https://me:" + _secret(58) + "@127.0.0.1:9/x.csv")),
    (0, ("runs",)),
    (0, ("baseline", "set", "main", "{db}")),
    (0, ("analyze", "{db}", *_REPORT)),
    (0, ("compare", "{db}", *_REPORT)),
    (
        0,
        (
            "report",
            "{db}",
            "--title",
            "t " + _shaped(48),
            *(f"--output=r.{end}" for end in ("html", "md", "json", "pdf")),
        ),
    ),
    (4, ("check", "log.csv", "--fail-on", "problem", "--junit", "j.xml", "--summary", "s.md")),
    (
        0,
        (
            "nightly",
            "log.csv",
            "--site",
            "site",
            "--label",
            "n " + _shaped(49),
            "--junit",
            "n.xml",
            "--summary",
            "n.md",
        ),
    ),
    (0, ("fleet", "-o", "f.html", "-o", "f.json")),
)


@pytest.mark.slow
def test_no_exit_shows_a_secret(gpureport: Program, tmp_path: Path, tracker: Path) -> None:
    """Standard streams and every file that a command writes, the store among them."""
    noise = f"wget https://me:{_secret(47)}@host/x\nAuthorization: Bearer {_secret(46)}\n"
    torn = f"2026/03/14 09:00:59.000, 0, NVIDIA L4, token={_secret(45)}\n"
    (tmp_path / "log.csv").write_text(log(60) + noise + torn)
    exits = Exits(tmp_path, sources=set(tmp_path.rglob("*")))
    for code, command in _COMMANDS:
        done = exits.run(gpureport, *(str(tracker) if word == "{db}" else word for word in command))
        assert done.code == code, (command, done.err[-300:])
    assert exits.collect_files() >= {"run.json", "r.pdf", "j.xml", "s.md", "n.xml"}
    assert any(HIDDEN.encode() in content for contents in exits.texts.values() for content in contents)
    assert exits.find_leaks(Planter({_secret(place): str(place) for place in range(60)})) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("max_tokens", "512"), ("tokenizer", "bert"), ("num_tokens_per_batch", "4e5"), ("key_padding", "same")),
        *(("primary_metric", "loss"), ("pad_token", "[PAD]"), ("eos_token", "</s>"), ("stop_tokens", "</s>")),
        *(("sort_key", "length"), ("bucket_key", "size"), ("monitor_metric", "auth"), ("label_key", "y")),
        *(("num_key_value_heads", "8"), ("key_dim", "64"), ("passes", "3"), ("author", "ann"), ("patience", "5")),
        *(("image_token", "<image>"), ("token_embedding", "learned"), ("lr", "3e-4"), ("optimizer", "adamw")),
        *(("tokenizer_path", "bert-base"), ("dataset", "s3://bucket/a/b"), ("schedule", "basic training")),
        *(("mlflow.source.git.commit", "0123456789abcdef0123456789abcdef01234567"), ("mlflow.parentRunId", "a1" * 16)),
        *(("query_key_norm", "rms"), ("tokens_per_step", "2M"), ("mask_token", "[MASK]"), ("group_key", "host")),
        *(("output_keys", "logits,hidden"), ("vocab_size", "50257"), ("token_dropout", "none"), ("key_type", "fp8")),
    ],
)
def test_settings_stay(name: str, value: str) -> None:
    """Words of machine learning that speak of tokens and keys."""
    assert redact_pairs([(name, value)]) == ((name, value),)
