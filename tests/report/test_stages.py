"""The stages of a run in every format."""

import json

from gpureport.report import build, render
from gpureport.report.formats.json import analysis_json
from gpureport.report.model.report_content import Report
from gpureport.testing import Recording, analyze, steps
from tests.analysis.test_jobs import staged

STAGES = staged(*["preprocessing"] * 6, *["train <b>"] * 12, util=[*steps((0, 6), (90, 12))])


def built(*found: Recording) -> Report:
    """Return the report of runs."""
    runs = [(each, analyze(each)) for each in found]
    return build(runs, title=None, command="gpureport", gpu_hour_price=None, version="1")


def test_the_table_says_what_each_stage_did() -> None:
    """Length, utilisation and idle share; what was not recorded is said to be so."""
    (table,) = built(STAGES).stages
    assert [row.head.text for row in table.table.rows] == ["preprocessing", "train <b>"]
    cells = [[cell.text.replace("\N{NO-BREAK SPACE}", " ") for cell in row.cells] for row in table.table.rows]
    assert [row[:3] for row in cells] == [["1 min", "0%", "100%"], ["2 min", "90%", "0%"]]
    assert cells[0][5] == "not recorded"


def test_one_stage_is_no_table() -> None:
    """Where a run is one stage, its figures are those of the run."""
    assert built(staged(*["training"] * 6, util=[50.0] * 6)).stages == ()


def test_every_format_shows_them() -> None:
    """Text and HTML have a heading and a row for each; a name cannot become markup."""
    content = built(STAGES)
    text = render(content, ".txt", detail=0).decode()
    assert "STAGES" in text
    assert "  preprocessing   1 min           0%       100%\n" in text
    page = render(content, ".html").decode()
    assert "<h3>Stages</h3>" in page
    assert "train &lt;b&gt;" in page


def test_the_json_has_them_by_name() -> None:
    """Statistics of each device by stage, as those of the whole run; empty for a run without stages."""
    (run,) = json.loads(analysis_json.render([analyze(STAGES)]))["runs"]
    assert list(run["stages"]) == ["preprocessing", "train <b>"]
    assert run["stages"]["preprocessing"]["gpu:0"]["idle_seconds"] == 60.0
    assert run["stages"]["train <b>"]["gpu:0"]["gpu_utilization_ratio"]["seconds"] == 120.0
