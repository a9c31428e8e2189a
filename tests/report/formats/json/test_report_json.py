"""The report as JSON."""

import json

import pytest
from generators import report_schema
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types

from gpureport.report.formats.json import report_json
from gpureport.report.model.report_content import Report
from tests.report import sample_reports

STRICT = Draft202012Validator(report_schema.strict(report_schema.schema()))


def faults(content: Report) -> list[str]:
    """Return where the JSON of a report is not what the schema says, or holds more."""
    found = STRICT.iter_errors(json.loads(report_json.render(content)))
    return [f"{error.json_path}: {error.message}" for error in found]


@pytest.mark.parametrize("name", ["report", "steps", "many", "clean", "hostile"])
def test_json_of_made_up_runs_is_valid(name: str, request: pytest.FixtureRequest) -> None:
    """Every field is described, of the type described."""
    assert faults(request.getfixturevalue(name)) == []


@pytest.mark.parametrize("name", sample_reports.SETS)
def test_json_of_sample_logs_is_valid(name: str) -> None:
    """As above, with all that real analyses put into a report."""
    assert faults(sample_reports.report_on(sample_reports.SETS[name], price=2.0)) == []


def test_the_schema_notices_what_is_wrong(report: Report) -> None:
    """A missing field, a wrong type and an unknown field are each found."""
    content = json.loads(report_json.render(report))
    for change in ({"schema": "gpureport.report/2"}, {"title": None}, {"besides": 1}):
        assert list(STRICT.iter_errors(content | change))
    del content["verdict"]
    assert list(STRICT.iter_errors(content))
