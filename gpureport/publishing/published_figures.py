"""Figures of a comparison for each of its runs, read from its JSON, named as a tracker keeps them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpureport.comparison.figures import TRAINING_RATE
from gpureport.comparison.verdict import Verdict
from gpureport.errors import SourceError
from gpureport.report.formats.comparison_json import SCHEMA

_HINT = "write one: gpureport compare BASE NEXT --format json"
TAG_NAMES = (
    "step",
    "judged_by",
    "compared_with",
    "verdict",
    "change",
    "change_since_first",
    "training_verdict",
    "training_change",
    "quality",
)
"""Names of the tags that a run may get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """What is published of one run."""

    name: str
    locators: tuple[tuple[str, str], ...]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]

    def tracker_id(self, kind: str) -> str | None:
        """Return its id in a tracker; None where that tracker did not record it."""
        found = (locator.rpartition("#")[2] for each, locator in self.locators if each == kind and "#" in locator)
        return next(found, None)


def is_comparison(file: Path) -> bool:
    """Return whether a file is the JSON of a comparison."""
    try:
        # its name stands at the beginning, and a report may be large
        with file.open(encoding="utf-8") as opened:
            return f'"{SCHEMA}"' in opened.read(200)
    except (OSError, UnicodeDecodeError):
        return False


def read_run_figures(file: Path) -> tuple[RunFigures, ...]:
    """Return the figures of each run of a comparison.

    Args:
        file: the JSON of `gpureport compare`.

    Raises:
        SourceError: when it is no whole comparison in JSON, or older than `sources` of runs.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        return tuple(_read_runs(document))
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(str(file), "cannot be read as JSON", _HINT, code="not_json") from error
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise SourceError(
            str(file), "not the JSON of a comparison by this version", _HINT, code="not_a_comparison_document"
        ) from error


def _read_runs(document: Mapping[str, Any]) -> Iterator[RunFigures]:
    labels = [step["label"] for step in document["steps"]]
    for place, step in enumerate(document["steps"]):
        tags = {"step": step["label"], "judged_by": document["primary"]}
        if place:
            tags |= _describe_changes(document, labels[: place + 1])
        for run in step["runs"]:
            known = {**run["measures"], "lost_ratio": run["lost_ratio"]}
            yield RunFigures(
                name=run["name"],
                locators=tuple((source["kind"], source["locator"]) for source in run["sources"]),
                metrics={name: float(value) for name, value in known.items() if value is not None},
                tags=tags,
            )


def _describe_changes(document: Mapping[str, Any], labels: Sequence[str]) -> dict[str, str]:
    """Return the tags that compare a step with the one before and the first."""
    tags = {"compared_with": labels[-2]}
    for metric, prefix in ((document["primary"], ""), (TRAINING_RATE, "training_")):
        before, first = (_find_change(document, metric, base, labels[-1]) for base in (labels[-2], labels[0]))
        if before is not None and _is_known(before, prefix):
            tags[f"{prefix}verdict"] = before["verdict"]
            tags[f"{prefix}change"] = _format_change(before)
        if first is not None and not prefix:
            tags["change_since_first"] = _format_change(first)
    pair = {"base": labels[-2], "step": labels[-1], "leading": True}
    quality = [_format_quality(change) for change in document["quality"] if _matches(change, pair)]
    tags["quality"] = "; ".join(filter(None, quality))
    return {name: text for name, text in tags.items() if text}


def _matches(entry: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(entry[key] == value for key, value in wanted.items())


def _format_quality(change: Mapping[str, Any]) -> str:
    """Return a training metric of both steps at equal work, if recorded, with the verdict."""
    values = [_format_value(change[side]) for side in ("before", "after")]
    # a document may be of a version that compared at the end
    work = "" if change.get("at_end", True) else f" at {change['work']:.6g} {change['work_unit']}"
    return f"{change['name']} {values[0]} to {values[1]}{work}: {change['verdict']}" if all(values) else ""


def _format_value(figure: Mapping[str, Any]) -> str:
    value = figure["final"] if figure.get("at_work") is None else figure["at_work"]
    if value is not None:
        return f"{value:.4g}"
    return "not a number" if figure["diverged"] else ""


def _find_change(document: Mapping[str, Any], metric: str, base: str, step: str) -> Mapping[str, Any] | None:
    wanted = {"metric": metric, "device": None, "base": base, "step": step}
    return next((delta for delta in document["deltas"] if _matches(delta, wanted)), None)


def _is_known(delta: Mapping[str, Any], prefix: str) -> bool:
    """Return whether a change has a verdict to publish; a rate that neither step recorded has none."""
    return not prefix or delta["before"] is not None or delta["after"] is not None


def _format_change(delta: Mapping[str, Any]) -> str:
    """Return a change in per cent, of a share in points, with its interval; empty without one, or enough data for it.

    The text has no character outside ASCII, which not every database of a tracker can hold.
    """
    difference, before, share = delta["difference"], delta["before"], delta["unit"] == "1"
    if difference is None or (not share and not before) or delta["verdict"] == Verdict.NOT_ENOUGH_DATA:
        return ""
    whole = 1 if share else before
    amounts = [f"{amount / whole * 100:+.0f}" for amount in (difference, *(delta["interval"] or ()))]
    unit = " points" if share else "%"
    return f"{amounts[0]}{unit}" + (f" ({amounts[1]} to {amounts[2]}{unit})" if len(amounts) > 1 else "")
