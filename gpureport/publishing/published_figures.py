"""Figures of a comparison for each of its runs, read from its JSON, named as MLflow keeps them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gpureport.comparison.figures import TRAINING_RATE
from gpureport.comparison.verdict import Verdict
from gpureport.errors import SourceError
from gpureport.report.formats.comparison_json import SCHEMA

TAG_NAMES = (
    *("step", "judged_by", "compared_with", "verdict", "change", "change_since_first"),
    *("training_verdict", "training_change", "quality"),
)
"""Names of the tags that a run may get."""


class RunFigures(NamedTuple):
    """What is published of one run; its id in MLflow is None where that did not record it."""

    name: str
    run_id: str | None
    metrics: Mapping[str, float]
    tags: Mapping[str, str]


def is_comparison(file: Path) -> bool:
    """Return whether a file is the JSON of a comparison."""
    try:
        # its name stands at the beginning, and a report may be large
        with file.open(encoding="utf-8") as opened:
            return f'"{SCHEMA}"' in opened.read(200)
    except (OSError, UnicodeDecodeError):
        return False


def read_run_figures(file: Path) -> list[RunFigures]:
    """Return the figures of each run of a comparison, or raise a `SourceError`: the JSON of older ones is refused."""
    hint = "write one: gpureport compare BASE NEXT --format json"
    try:
        return [*_read_runs(json.loads(file.read_text(encoding="utf-8")))]
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        what = "not the JSON of a comparison by this version"
        raise SourceError(str(file), what, hint, code="not_a_comparison_document") from error
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(str(file), "cannot be read as JSON", hint, code="not_json") from error


def _read_runs(document: Mapping[str, Any]) -> Iterator[RunFigures]:
    labels = [step["label"] for step in document["steps"]]
    for place, step in enumerate(document["steps"]):
        tags = {"step": step["label"], "judged_by": document["primary"]}
        if place:
            tags |= _describe_changes(document, labels[: place + 1])
        for run in step["runs"]:
            located = (each["locator"] for each in run["sources"] if each["kind"] == "mlflow")
            run_id = next((locator.rpartition("#")[2] for locator in located if "#" in locator), None)
            known = {**run["measures"], "lost_ratio": run["lost_ratio"]}
            metrics = {name: float(value) for name, value in known.items() if value is not None}
            yield RunFigures(run["name"], run_id, metrics, tags)


def _describe_changes(document: Mapping[str, Any], labels: Sequence[str]) -> dict[str, str]:
    base, step = labels[-2:]
    tags = {"compared_with": base}
    for metric, prefix in ((document["primary"], ""), (TRAINING_RATE, "training_")):
        before, first = (_find_change(document, metric, each, step) for each in (base, labels[0]))
        # a rate that neither step recorded has no verdict to publish
        if before is not None and not (prefix and before["before"] is before["after"] is None):
            tags[f"{prefix}verdict"] = before["verdict"]
            tags[f"{prefix}change"] = _format_change(before)
        if first is not None and not prefix:
            tags["change_since_first"] = _format_change(first)
    pair = (base, step, True)
    quality = (each for each in document["quality"] if (each["base"], each["step"], each["leading"]) == pair)
    tags["quality"] = "; ".join(filter(None, map(_format_quality, quality)))
    return {name: text for name, text in tags.items() if text}


def _format_quality(change: Mapping[str, Any]) -> str:
    values = []
    for figure in (change["before"], change["after"]):
        value = figure["final"] if figure.get("at_work") is None else figure["at_work"]
        if value is None and not figure["diverged"]:
            return ""
        values.append("not a number" if value is None else f"{value:.4g}")
    # a document may be of a version that compared at the end
    work = "" if change.get("at_end", True) else f" at {change['work']:.6g} {change['work_unit']}"
    return f"{change['name']} {values[0]} to {values[1]}{work}: {change['verdict']}"


def _find_change(document: Mapping[str, Any], metric: str, base: str, step: str) -> Mapping[str, Any] | None:
    wanted = (metric, None, base, step)
    deltas = document["deltas"]
    return next(
        (each for each in deltas if (each["metric"], each["device"], each["base"], each["step"]) == wanted), None
    )


def _format_change(delta: Mapping[str, Any]) -> str:
    """Return a change in per cent, of a share in points, with its interval; empty without one, or enough data for it.

    The text has no character outside ASCII, which not every database of a tracker can hold.
    """
    difference, before, share = delta["difference"], delta["before"], delta["unit"] == "1"
    if difference is None or (not share and not before) or delta["verdict"] == Verdict.NOT_ENOUGH_DATA:
        return ""
    whole, unit = (1, " points") if share else (before, "%")
    amounts = [f"{amount / whole * 100:+.0f}" for amount in (difference, *(delta["interval"] or ()))]
    return f"{amounts[0]}{unit}" + (f" ({amounts[1]} to {amounts[2]}{unit})" if len(amounts) > 1 else "")
