"""What was read, in a line."""

from dataclasses import replace

import pytest

from gpureport.report.runs.quiet_line import build_subtitle
from gpureport.report.runs.report_run import ReportRun
from gpureport.testing import Work, analyze, recording


@pytest.mark.parametrize(
    ("works", "words"),
    [
        ((12_800, 12_800), "12,800 images a run"),
        ((44_800, 12_800), "12,800 to 44,800 images a run"),
        ((12_800, None), ""),
    ],
)
def test_work_of_runs_that_differ_is_a_range(works: tuple[int | None, ...], words: str) -> None:
    """A reader sees that a run of the same length did more; work that is not known of all is left out."""
    runs = []
    for place, amount in enumerate(works):
        made = recording(util=90.0)
        work = None if amount is None else Work(amount=amount, unit="images")
        named = replace(made, run=replace(made.run, id=str(place), work=work))
        runs.append(ReportRun(label=str(place), step=str(place), recording=named, analysis=analyze(named)))
    parts = build_subtitle(runs).split(" \N{MIDDLE DOT} ")
    assert [part for part in parts if "images" in part] == ([words] if words else [])
