"""Several jobs in one log, and time of no job, in every format."""

import json

import numpy as np
import pytest

from gpureport.report import build
from gpureport.report.formats.json import analysis_json
from gpureport.report.formats.text import terminal
from gpureport.report.model.report_content import Report
from gpureport.report.wording.display import GAP
from gpureport.testing import analyze, recording, steps

_UTIL = steps((97, 600), (0, 600), (97, 570), (0, 30), (0, 1200))
_MEMORY = steps((20, 600), (0, 600), (20, 600), (0, 1200))


def _report(*, gpus: int = 1) -> Report:
    run = recording(util=[_UTIL] * gpus, memory=[_MEMORY] * gpus)
    return build(
        [(run, analyze(run))], title=None, command="gpureport report a.csv", gpu_hour_price=None, version="0.1.0"
    )


def _plain(text: str) -> str:
    return " ".join(text.replace(GAP, " ").split())


def test_the_result_lists_the_jobs_and_says_what_no_job_held() -> None:
    """With their times, and how to read one of them."""
    notes = [_plain(line) for line in _report().verdict.notes]
    assert notes[0].endswith("(10 min). Read one of them with --job N.")
    assert notes[0].startswith("The log holds 2 jobs: job 1, ")
    assert notes[1] == "No job was on a GPU for another 30.0 GPU-min; no figure counts that time."


def test_a_log_of_one_job_says_nothing_of_jobs() -> None:
    """What everybody expects needs no word."""
    run = recording(util=np.full(600, 97.0), memory=np.full(600, 20.0))
    content = build([(run, analyze(run))], title=None, command="", gpu_hour_price=None, version="0.1.0")
    assert "job" not in " ".join((*content.verdict.details, *content.verdict.notes))


def test_headline_tiles_and_bar_are_of_the_jobs() -> None:
    """The share of the half minute at the end is that of the jobs' time, wherever it is told."""
    content = _report()
    assert _plain(content.verdict.details[0]) == "2.5% of 20.0 GPU-min was lost: all of it after the work."
    assert _plain(content.tiles[0].context) == "Of 20.0 GPU-min; lost 2.5%"
    (bar,) = content.gpu_time
    assert {part.key: _plain(part.text) for part in bar.parts}["tail"] == "2.5%"
    assert sum(part.ratio for part in bar.parts) == pytest.approx(1)
    assert _plain(bar.no_job) == "30.0 GPU-min"


def test_every_format_says_what_no_job_held() -> None:
    """Beside the classes, which it is none of."""
    content = _report(gpus=2)
    assert content.gpu_time_table is not None
    assert content.gpu_time_table.columns[-1] == "no job"
    assert "not counted: 1.00 GPU-h without a job" in _plain(terminal.render(content))
    (seconds,) = [bar.no_job_seconds for bar in content.gpu_time if bar.label == "all GPUs"]
    assert seconds == pytest.approx(3600, abs=2)


def test_the_data_quality_lists_the_jobs() -> None:
    """Where they are looked up."""
    facts = {fact.name: fact.text for fact in _report().quality[0].facts}
    assert facts["Jobs"].startswith("job 1, ")


def test_json_holds_the_jobs() -> None:
    """With the devices that worked, and when no job held each."""
    run = recording(util=_UTIL, memory=_MEMORY)
    document = analysis_json.render([analyze(run)])
    assert '"jobs"' in document
    assert '"work_start"' in document
    assert '"no_job"' in document


def test_json_holds_figures_of_the_recording_and_of_its_jobs() -> None:
    """The time of no job is idle time of the recording, and of no job."""
    run = recording(util=_UTIL, memory=_MEMORY)
    (told,) = json.loads(analysis_json.render([analyze(run)]))["runs"]
    idle = [told[name]["gpu:0"]["idle_seconds"] for name in ("statistics", "job_statistics")]
    assert idle == pytest.approx([1830, 30], abs=2)
