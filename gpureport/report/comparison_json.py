"""The JSON of `gpureport compare` (schema `gpureport.comparison/1`): it grows, it never renames.

Numbers are in base units; null is what was not recorded, or not computed.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from gpureport.analysis.base import Analysis
from gpureport.comparison.fates import Fate, FindingFate
from gpureport.comparison.links import Link, links
from gpureport.comparison.measures import Measure, measures
from gpureport.comparison.steps import CANNOT_JUDGE, Delta, Step, compare

SCHEMA = "gpureport.comparison/1"


def render(analyses: Sequence[Analysis]) -> str:
    """Return the comparison of runs, in the order of their steps, as JSON text."""
    comparison = compare(analyses)
    found = links(comparison)
    document = {
        "schema": SCHEMA,
        "steps": [_step(step) for step in comparison.steps],
        "comparability": [asdict(check) for link in found for check in link.comparability],
        "deltas": [_delta(delta) for delta in comparison.deltas],
        "findings": {fate.value: _fates(found, fate) for fate in Fate},
        "across_runs": [],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _step(step: Step) -> dict[str, Any]:
    return {
        "label": step.label,
        "work_unit": step.work_unit,
        "measures": _measures(step.measures),
        "runs": [
            {"id": each.run.id, "name": each.run.name, "measures": _measures(measures([each]))}
            for each in step.analyses
        ],
    }


def _measures(values: Iterable[Measure]) -> dict[str, float | None]:
    return {measure.metric: measure.value for measure in values}


def _delta(delta: Delta) -> dict[str, Any]:
    """Return a difference; while it is not tested, nothing can be judged by it, and the reason says so."""
    return asdict(delta) | {"level": None, "basis": None, "detectable_difference": None, "verdict": CANNOT_JUDGE}


def _fates(found: Sequence[Link], fate: Fate) -> list[dict[str, Any]]:
    return [_fate(entry) for link in found for entry in link.fates if entry.fate is fate]


def _fate(entry: FindingFate) -> dict[str, Any]:
    return {name: value for name, value in asdict(entry).items() if name != "fate"}
