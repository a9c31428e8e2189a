"""The page on the JSON of many runs names every field there is."""

from dataclasses import fields
from pathlib import Path

from gpureport.fleet import fleet_report
from gpureport.fleet.fleet_report import CardHealth, FleetHealth, FleetReport, Group, Saving, TimeUse
from gpureport.fleet.summaries.summary_table import SCHEMA
from gpureport.testing import GPU_TIME_CLASSES

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "fleet-json.md").read_text(encoding="utf-8")


def test_every_field_and_column_is_described() -> None:
    """Fields of the report and its parts, values of symptoms, and columns of the table."""
    parts = (FleetReport, TimeUse, Group, Saving, CardHealth, FleetHealth)
    names = {field.name for part in parts for field in fields(part)}
    names |= {each.value for each in fleet_report.Symptom}
    classes = {f"{name}_seconds" for name in GPU_TIME_CLASSES} - {"idle_seconds"}
    names |= set(SCHEMA.names) - classes
    assert sorted(name for name in names if f"`{name}`" not in PAGE) == []
