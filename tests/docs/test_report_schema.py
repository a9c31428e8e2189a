"""The schema of a report's JSON is what the code says."""

import json
from pathlib import Path

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types

from tests.docs import report_schema

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "report-1.schema.json"


def test_the_schema_is_what_the_code_says(*, update_golden: bool) -> None:
    """The file equals what is made from the dataclasses, and is a schema."""
    made = report_schema.page()
    if update_golden:
        PAGE.write_text(made, encoding="utf-8", newline="\n")
    assert PAGE.read_text(encoding="utf-8") == made
    Draft202012Validator.check_schema(json.loads(made))


def test_every_field_of_a_part_with_attributes_is_described() -> None:
    """Where a docstring explains attributes it explains all of them, and the schema carries what it says."""
    undescribed = []
    for name, part in report_schema.schema()["$defs"].items():
        told = {field for field, value in part["properties"].items() if "description" in value}
        if told:
            undescribed += [f"{name}.{field}" for field in part["properties"] if field not in told]
    assert undescribed == []
