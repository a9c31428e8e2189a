"""What to record is one answer in every text of every report."""

import re
from pathlib import Path

import numpy as np
import pytest

import gpureport
from gpureport import testing
from gpureport.answers import Practice
from gpureport.gpu_query import GPU_FIELDS, IDENTITY_FIELDS
from gpureport.recording_advice import GPU_COMMAND, RECORD, choose_recording
from gpureport.report.explain.explained_recording import explain_recording

SAMPLES = Path(__file__).parents[2] / "sample_logs"
QUICK = ["thermal_throttle", "low_util_cause_unknown", "dmon", "healthy"]
SLOW = sorted(path.name for path in SAMPLES.iterdir() if path.name not in {*QUICK, "mapped", "recorded"})
_QUERY = re.compile(r"--query-gpu=(\S+)")
_MARKUP = re.compile(r"<[^>]*>")


def _texts(sample: str) -> dict[str, str]:
    """Return a report in every format of words, without the marks of HTML."""
    runs = gpureport.read(SAMPLES / sample)
    texts = {name: str(gpureport.report(runs, format=name)) for name in ("html", "md", "json", "txt")}
    return texts | {"html": _MARKUP.sub("", texts["html"])}


@pytest.mark.parametrize("sample", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_a_raw_query_stands_once_and_says_which_gpu(sample: str) -> None:
    """At most one in a report, with what identifies a GPU; one command before it records the same."""
    for name, text in _texts(sample).items():
        queries = _QUERY.findall(text)
        assert len(queries) <= 1, name
        for query in queries:
            assert tuple(query.split(",")[: len(IDENTITY_FIELDS)]) == IDENTITY_FIELDS, name
            assert text.index(RECORD) < text.index(query), name


@pytest.mark.parametrize("sample", QUICK)
def test_checks_checklist_and_explanation_give_one_answer(sample: str) -> None:
    """What is said of metrics follows from their names alone, and `explain recording` begins with it."""
    (run,) = gpureport.read(SAMPLES / sample)
    analysis = gpureport.analyze(run)
    asked = [entry for entry in analysis.not_judged if entry.metrics]
    assert asked
    assert {entry.recording for entry in asked} == {RECORD}
    assert [entry.recording for entry in asked] == [choose_recording(entry.metrics) for entry in asked]
    unknown = [entry for entry in analysis.checklist if entry.state is Practice.CANNOT_JUDGE and entry.metrics]
    assert all(entry.recording.startswith(RECORD) for entry in unknown)
    first, *_ = explain_recording().sections
    assert first.code == (RECORD,)
    assert GPU_COMMAND in {line for section in explain_recording().sections for line in section.code}


def test_what_a_log_holds_without_a_value_is_not_to_be_recorded_again(tmp_path: Path) -> None:
    """A log of every field, of a GPU that reports few: nothing of it is asked for once more."""
    known = {"index": "0", "name": "Tesla T4", "uuid": "GPU-11111111-2222-3333-4444-555555555555"}
    known |= {"memory.total": "15360 MiB", "memory.used": "9000 MiB", "utilization.gpu": "90 %"}
    units = {"memory.total": " [MiB]", "memory.used": " [MiB]", "utilization.gpu": " [%]"}
    rows = [", ".join(f"{field}{units.get(field, '')}" for field in GPU_FIELDS)]
    for second in range(120):
        stamp = f"2026/03/14 09:{second // 60:02d}:{second % 60:02d}.000"
        rows.append(", ".join(known.get(field, "[N/A]") for field in GPU_FIELDS).replace("[N/A]", stamp, 1))
    (tmp_path / "gpu.csv").write_text("\n".join([*rows, ""]))
    (run,) = gpureport.read(tmp_path)
    analysis = gpureport.analyze(run)
    held = set(run.series.column_names)
    again = [one for one in analysis.not_judged if one.recording == RECORD and one.metrics and held >= {*one.metrics}]
    assert again == []
    absent = {entry.kind: entry for entry in analysis.not_judged}
    assert "does not report it" in absent["ecc_error"].reason
    assert absent["ecc_error"].recording == ""
    assert absent["cpu_bound"].recording == RECORD


def test_what_was_never_logged_is_to_be_recorded() -> None:
    """The same check of a log without the columns."""
    run = testing.recording(util=np.full(100, 90.0))
    (entry,) = testing.unjudged(gpureport.analyze(run), "ecc_error")
    assert entry.recording == RECORD
