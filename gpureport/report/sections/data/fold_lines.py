"""What each fold of a report holds, in one line: the reader opens a fold only where that line makes it worth while."""

from collections import Counter
from collections.abc import Iterator

from gpureport.findings import CheckOutcome, Outcome, Severity
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Fact
from gpureport.report.sections.findings.assessed import STATES
from gpureport.report.wording import display
from gpureport.report.wording.display import format_range

_SLOWING_KINDS = {"thermal_throttle", "hw_throttle"}
_LINE = 90
"""Most characters of a line taken over from elsewhere."""


def build_fold_lines(report: Report) -> tuple[Fact, ...]:
    """Return a statement for each fold of a report: its name, and what it holds."""
    lines = {
        "Findings": _describe_findings(report),
        "Timeline": _describe_timeline(report),
        "Gains": "what each step gained, and what that rests on" if _has_gains(report) else "",
        f"Changes between {_name_parts(report)}": _describe_pairs(report),
        "Every run" if len(report.timeline) > 1 else "GPU time in figures": _describe_runs(report),
        "The GPU" if _has_one_gpu(report) else "Per GPU": _describe_gpus(report),
        "Energy and cost": _describe_spending(report),
        "Data quality": _describe_quality(report),
        "Not assessed": _describe_judgement(report),
        "Checklist": _describe_checklist(report),
        "Policy": _describe_policy(report),
        "Also worth knowing": display.plural(len(report.verdict.notes), "note") if report.verdict.notes else "",
        "Method": "how the figures were made, and every limit with its origin",
    }
    return tuple(Fact(name=name, text=text) for name, text in lines.items() if text)


def _has_one_gpu(report: Report) -> bool:
    return {len(run.table.rows) for run in report.gpus} == {1}


def _name_parts(report: Report) -> str:
    return "groups" if report.comparison is not None and report.comparison.grouped else "steps"


def _has_gains(report: Report) -> bool:
    return report.comparison is not None and report.comparison.gains is not None


def _describe_findings(report: Report) -> str:
    """Return how many findings of each severity there are, one a kind and cause, and over how many runs."""
    severities = Counter(row.severity for row in report.rows)
    plural_of = {Severity.PROBLEM.value: "problem", Severity.WARNING.value: "warning"}
    parts = [display.plural(severities[key], word) for key, word in plural_of.items() if severities[key]]
    if severities[Severity.INFO.value]:
        parts.append(f"{severities[Severity.INFO.value]} info")
    runs = f" in {len(report.quality)} runs" if len(report.quality) > 1 else ""
    return (", ".join(parts) or "none") + runs


def _describe_timeline(report: Report) -> str:
    strips = sum(len(run.strips) for run in report.timeline)
    if not strips:
        return "a single moment: nothing to draw"
    undrawn = sum(run.undrawn_gpus for run in report.timeline)
    gpus = f"{strips} of {strips + undrawn} GPUs" if undrawn else display.plural(strips, "GPU")
    where = f"{len(report.timeline)} runs" if len(report.timeline) > 1 else gpus
    return f"every sample of {where}, to zoom into"


def _describe_pairs(report: Report) -> str:
    if report.comparison is None:
        return ""
    return f"every figure before and after, in {display.plural(len(report.comparison.links), 'comparison')}"


def _describe_runs(report: Report) -> str:
    """Return how many runs there are, and how long they took; of a single run its GPU time."""
    if len(report.timeline) == 1:
        return report.gpu_time[0].total if report.gpu_time else ""
    times = format_range((run.seconds for run in report.timeline), display.duration)
    return f"{len(report.timeline)} runs, {times}"


def _describe_gpus(report: Report) -> str:
    """Return which GPU stands apart; where none does, that none was slowed, if that is known of every run."""
    outliers = [line for run in report.gpus for line in run.outliers]
    if outliers:
        first = outliers[0].partition(":")[0]
        return display.shorten(first, _LINE) + (f"; {len(outliers) - 1} more" if len(outliers) > 1 else "")
    answers = [line for run in report.answers for line in run.lines if line.kind in _SLOWING_KINDS]
    is_known = {line.kind for line in answers} == _SLOWING_KINDS
    if is_known and {line.outcome for line in answers} == {Outcome.JUDGED.value}:
        return "never slowed by heat or hardware"
    return "clock, temperature, power, memory and utilisation"


def _describe_spending(report: Report) -> str:
    """Return the energy of a single run; of several only what the fold holds."""
    names = {fact.name for run in report.spending for fact in run.facts}
    if not names:
        return ""
    priced = "" if "Cost" in names else "; no price given"
    if len(report.spending) > 1:
        return ("energy and cost of each run" if "Cost" in names else "energy of each run") + priced
    energy = next((fact.text for fact in report.spending[0].facts if fact.name == "Energy"), "")
    return (energy.partition(" by ")[0] or "energy not recorded") + priced


def _describe_quality(report: Report) -> str:
    """Return how often samples were taken, and what is wrong with the data; that nothing is where nothing is."""
    runs = [run.recording.run for run in report.timeline]
    intervals = [run.interval for run in runs if run.interval]
    every = f"a sample every {format_range(intervals, _format_interval)}" if intervals else "a single sample"
    return ", ".join((every, *_list_faults(report)))


def _format_interval(seconds: float) -> str:
    return display.duration(round(seconds, 1) if seconds < 10 else seconds)  # noqa: PLR2004 - three figures


def _list_faults(report: Report) -> Iterator[str]:
    qualities = [run.recording.run.quality for run in report.timeline]
    gaps = sum(len(quality.gaps) for quality in qualities)
    rejected = sum(each.rows for quality in qualities for each in quality.rejected)
    yield display.plural(gaps, "gap") if gaps else "no gap"
    yield f"{display.plural(rejected, 'line')} left out" if rejected else "no line lost"
    steps = sum(len(quality.clock_steps) for quality in qualities)
    if steps:
        yield display.plural(steps, "backward step") + " of the clock"
    if any(run.notes for run in report.quality):
        yield "with notes"


def _describe_judgement(report: Report) -> str:
    """Return how many checks were not assessed, as the sentence in the fold counts them."""
    found = report.judgement
    if not found.checks:
        return ""
    if not found.missing:
        return f"{found.partly} of {found.checks} checks in part" if found.partly else f"all {found.checks} assessed"
    return f"{found.missing} of {found.checks} checks{f', {found.partly} more in part' if found.partly else ''}"


def _describe_checklist(report: Report) -> str:
    if not report.checklists:
        return ""
    states = Counter(line.state for line in report.checklists[-1].lines)
    return ", ".join(f"{states[state]} {word}" for state, word in STATES.items() if states[state])


def _describe_policy(report: Report) -> str:
    if report.policy is None:
        return ""
    outcomes = Counter(row.cells[0].text for row in report.policy.rows)
    words = {
        CheckOutcome.BROKEN: "failed",
        CheckOutcome.CANNOT_JUDGE: "not assessed",
        CheckOutcome.PASSED: "met",
    }
    parts = (
        f"{outcomes[outcome.value]} {words.get(outcome, outcome.value)}"
        for outcome in CheckOutcome
        if outcomes[outcome.value]
    )
    return f"{display.plural(len(report.policy.rows), 'rule')}: {', '.join(parts)}"
