"""What `gpureport compare` shows: the chain of steps, and of every link what changed and what may be doubted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpureport.analysis.base import Analysis
from gpureport.comparison.comparability import Comparability
from gpureport.comparison.links import Link, links
from gpureport.comparison.steps import NO_UNCERTAINTY, Comparison, compare
from gpureport.recording import Recording
from gpureport.report import chain, display, fate_lines, step_table, verdict
from gpureport.report.inputs import RunInput
from gpureport.report.parts import Cell, Fact, Row, Table

_CHECKS = {
    "gpu_models": "GPU models",
    "gpu_count": "Number of GPUs",
    "sampling_interval": "Sampling interval",
    "power_reading": "Power read from",
    "power_limit": "Power limit",
    "driver": "Driver",
    "duration": "Duration of a run",
    "observed_time": "Time recorded",
    "work_unit": "Work counted in",
    "different_runs": "Run",
    "timezone": "Time zone",
}
_VALUE = 22
"""Most characters of a value, so that two stand side by side on a terminal."""
_SILENT = {"different_runs", "observed_time"}
"""Checks that are shown only when they fail."""

_ABSENT = {"timezone": "not known", "work_unit": "not given"}
_AGREE = {True: "yes", False: "doubtful", None: "unknown"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkView:
    """One step against the step before it.

    Attributes:
        label: both labels.
        figures: before, after and difference of every figure.
        findings: what became of findings, the fate as the name.
        checks: both values of everything that must agree.
        doubts: what makes the comparison doubtful.
        unknown: what may make it so, but was not recorded; empty when nothing.
    """

    label: str
    figures: Table
    findings: tuple[Fact, ...]
    checks: Table
    doubts: tuple[str, ...]
    unknown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
    """A whole comparison, in the order it is read.

    Attributes:
        subtitle: runs, steps and hardware.
        sentence: how the figures moved from the first to the last step.
        notes: what to know before acting on it.
        steps: figures of every step and replicate; None where one link says all.
        links: every step against the one before.
    """

    subtitle: str
    sentence: str
    notes: tuple[str, ...]
    steps: Table | None
    links: tuple[LinkView, ...]


def build(runs: Sequence[tuple[Recording, Analysis]]) -> ComparisonView:
    """Return the comparison of runs in the order of their steps."""
    named = chain.named(runs)
    comparison = compare([analysis for _, analysis in named])
    inputs = chain.ordered(named, comparison)
    found = links(comparison)
    several = len(comparison.steps) > 2 or len(inputs) > len(comparison.steps)  # noqa: PLR2004 - one link is a pair
    return ComparisonView(
        subtitle=chain.subtitle(inputs),
        sentence=_sentence(comparison, found),
        notes=tuple(_notes(comparison, found)),
        steps=step_table.overview(comparison) if several else None,
        links=tuple(_link(link, inputs) for link in found),
    )


def _sentence(comparison: Comparison, found: Sequence[Link]) -> str:
    if not any(link.comparable for link in found):
        return "Nothing can be compared with these recordings."
    first, last = comparison.steps[0], comparison.steps[-1]
    brief = any(step.label in {first.label, last.label} for link in found for step in link.brief)
    return "" if brief else verdict.change(first, last)


def _notes(comparison: Comparison, found: Sequence[Link]) -> Iterator[str]:
    short = dict.fromkeys(step.label for link in found for step in link.brief)
    if short:
        yield f"Less than a minute was recorded of {display.listing(list(short))}: too short to be set against another."
    if not any(link.comparable for link in found):
        return
    doubts = list(dict.fromkeys(_CHECKS[check.check] for link in found for check in _doubts(link)))
    if doubts:
        yield f"The comparison is doubtful, as said below: {display.listing(doubts)}."
    single = all(len(step.analyses) == 1 for step in comparison.steps)
    runs = "each step is a single run" if single else "the scatter of repeated runs is shown but not yet used"
    yield f"No difference is tested, and {runs}. {NO_UNCERTAINTY}"
    if not all(step.work_unit for step in comparison.steps):
        yield verdict.NO_THROUGHPUT


def _doubts(link: Link) -> Iterator[Comparability]:
    return (check for check in link.comparability if check.comparable is False)


def _link(link: Link, inputs: Sequence[RunInput]) -> LinkView:
    return LinkView(
        label=f"{display.clean(link.base.label)} to {display.clean(link.step.label)}",
        figures=step_table.differences(link.base, link.step, link.deltas),
        findings=tuple(fate_lines.lines(link.fates, inputs)),
        checks=_checks(link.comparability),
        doubts=tuple(_doubt(check) for check in _doubts(link)),
        unknown=_unknown(link.comparability),
    )


def _checks(checks: Sequence[Comparability]) -> Table:
    shown = [check for check in checks if check.check not in _SILENT or not check.comparable]
    rows = tuple(
        Row(
            head=Cell(text=_CHECKS[check.check]),
            cells=tuple(
                Cell(text=display.squeeze(text, _VALUE))
                for text in (_value(check, check.before), _value(check, check.after), _AGREE[check.comparable])
            ),
        )
        for check in shown
    )
    return Table(columns=("", "Before", "After", "Comparable"), numeric=(False,) * 3, rows=rows)


def _value(check: Comparability, value: str | float | None) -> str:
    if value is None:
        return _ABSENT.get(check.check, display.NOT_RECORDED)
    return display.clean(value) if isinstance(value, str) else display.quantity(value, check.unit)


def _doubt(check: Comparability) -> str:
    values = f"{_value(check, check.before)} against {_value(check, check.after)}"
    return f"{_CHECKS[check.check]}: {values}. {check.note}"


def _unknown(checks: Sequence[Comparability]) -> str:
    names = [_CHECKS[check.check] for check in checks if check.comparable is None]
    return f"Whether they agree cannot be told from what was recorded: {display.listing(names)}." if names else ""
