"""Files: whole or not at all, the same bytes each time, and one error where one cannot be written."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gpureport
from gpureport.errors import RenderError
from tests.support import runs
from tests.support.hostile import TEXTS, steps_with
from tests.support.runs import CHAIN, SAMPLES, run

FORMS = ("html", "json", "md", "pdf", "png", "svg", "txt")


def test_every_format_is_written_and_repeatable(tmp_path: Path) -> None:
    results = steps_with(TEXTS["script"])
    folder = tmp_path / "a" / "b"
    for form in FORMS:
        for name in ("r", "s"):
            assert gpureport.report(results, folder / f"{name}.{form}") == folder / f"{name}.{form}"
        assert (folder / f"r.{form}").read_bytes() == (folder / f"s.{form}").read_bytes(), form
    assert len(list(folder.iterdir())) == 2 * len(FORMS)


@pytest.mark.slow
def test_same_bytes_whatever_the_hash_seed_and_the_zone(tmp_path: Path) -> None:
    written = []
    for seed in ("0", "1", "4242"):
        names = [f"report.{form}" for form in FORMS]
        outputs = [part for name in names for part in ("-o", str(tmp_path / seed / name))]
        command = [sys.executable, "-m", "gpureport", "report", *(str(SAMPLES / name) for name in CHAIN), *outputs]
        setting = {"PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": "1700000000", "TZ": f"UTC{seed[0]}"}
        subprocess.run([*command, "--title", "steps"], env={**os.environ, **setting}, capture_output=True, check=True)
        written.append({name: (tmp_path / seed / name).read_bytes() for name in names})
    assert all(written[0].values())
    assert [name for other in written[1:] for name, content in written[0].items() if other[name] != content] == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("report.docx", "unknown_file_type"),
        ("report", "unknown_file_type"),
        ("report.xml", "unknown_file_type"),
        ("report.prom", "unknown_file_type"),
        ("metrics.txt", "unknown_file_type"),
        ("file/report.html", "cannot_write"),
    ],
)
def test_what_cannot_be_written_is_an_error_with_its_path(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RenderError) as raised:
        gpureport.report(run(), tmp_path / name)
    assert (raised.value.code, raised.value.where) == (code, str(tmp_path / name))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.txt"
    target.write_text("old")

    def full(_self: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(RenderError) as raised:
        gpureport.report(run(), target)
    assert raised.value.code == "cannot_write"
    assert [path.name for path in tmp_path.iterdir()] == ["report.txt"]
    assert target.read_text() == "old"


@pytest.mark.slow
def test_json_is_valid_by_its_schema_and_holds_no_samples() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((SAMPLES.parent / "docs/reference/report-2.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(strict(schema))
    made: list[Any] = [run(), run(gpus=1, seconds=0), steps_with(TEXTS["script"]), runs.recorded_steps()]
    for results in (*made, *map(runs.sample, runs.FOLDERS)):
        content = json.loads(gpureport.report(results, format="json"))
        assert [error.message for error in validator.iter_errors(content)] == []
        assert content["schema"] == "gpureport.report/2"
        assert all("recording" not in each for each in content["timeline"])
    wrong = {**content, "tiles": [{"label": 1}], "more": True}
    assert len(list(validator.iter_errors(wrong))) >= 2


def strict(schema: object) -> object:
    """Return a schema that allows for no further field, to find what is not described."""
    if isinstance(schema, list):
        return [strict(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: strict(entry) for name, entry in schema.items()}
    return inner | ({"additionalProperties": False} if inner.get("type") == "object" else {})


def test_a_report_loads_neither_pandas_nor_pyplot_nor_scipy_stats() -> None:
    slow = ("pandas", "matplotlib.pyplot", "scipy.stats")
    code = (
        f"import sys, gpureport; gpureport.report(gpureport.read({str(SAMPLES / 'healthy')!r}), format='html');"
        f"print([name for name in {slow!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
