"""What each fold of a report holds, in one line: the reader opens a fold only where that line makes it worth while."""

from collections import Counter
from collections.abc import Iterator

from gpureport.findings import CheckOutcome, Outcome
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Fact
from gpureport.report.sections.findings.assessed import STATES
from gpureport.report.wording import display
from gpureport.report.wording.display import format_range
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS

_SLOWING_KINDS = {"thermal_throttle", "hw_throttle"}
_LINE = 90
"""Most characters of a line taken over from elsewhere."""


def build_fold_lines(report: Report) -> tuple[Fact, ...]:
    """Return a statement for each fold of a report: its name, and what it holds."""
    comparison, several = report.comparison, len(report.timeline) > 1
    parts = "groups" if comparison is not None and comparison.grouped else "steps"
    pairs = display.plural(len(comparison.links), "comparison") if comparison is not None else ""
    has_gains = comparison is not None and comparison.gains is not None
    has_one_gpu = {len(run.table.rows) for run in report.gpus} == {1}
    lines = {
        "Findings": _describe_findings(report),
        "Timeline": _describe_timeline(report),
        "Gains": "what each step gained, and what that rests on" if has_gains else "",
        f"Changes between {parts}": f"every figure before and after, in {pairs}" if pairs else "",
        "Every run" if several else "GPU time in figures": _describe_runs(report),
        "The GPU" if has_one_gpu else "Per GPU": _describe_gpus(report),
        "Energy and cost": _describe_spending(report),
        "Data quality": ", ".join(_list_quality(report)),
        "Not assessed": _describe_judgement(report),
        "Checklist": _describe_checklist(report),
        "Policy": _describe_policy(report),
        "Also worth knowing": display.plural(len(report.verdict.notes), "note") if report.verdict.notes else "",
        "Method": "how the figures were made, and every limit with its origin",
    }
    return tuple(Fact(name=name, text=text) for name, text in lines.items() if text)


def _describe_findings(report: Report) -> str:
    """Return how many findings of each severity there are, one a kind and cause, and over how many runs."""
    counts = Counter(row.severity for row in report.rows)
    parts = [display.plural(counts[word], word) for word in ("problem", "warning") if counts[word]]
    parts += [f"{counts['info']} info"] if counts["info"] else []
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
        first = display.shorten(outliers[0].partition(":")[0], _LINE)
        return first + (f"; {len(outliers) - 1} more" if len(outliers) > 1 else "")
    answers = [line for run in report.answers for line in run.lines if line.kind in _SLOWING_KINDS]
    is_known = {line.kind for line in answers} == _SLOWING_KINDS
    if is_known and {line.outcome for line in answers} == {Outcome.JUDGED.value}:
        return "never slowed by heat or hardware"
    return "clock, temperature, power, memory and utilisation"


def _describe_spending(report: Report) -> str:
    """Return the energy of a single run; of several only what the fold holds."""
    facts = [fact for run in report.spending for fact in run.facts]
    if not facts:
        return ""
    is_priced = "Cost" in {fact.name for fact in facts}
    energy = next((fact.text for fact in facts if fact.name == "Energy"), "").partition(" by ")[0]
    said = energy or "energy not recorded"
    if len(report.spending) > 1:
        said = "energy and cost of each run" if is_priced else "energy of each run"
    return said if is_priced else f"{said}; no price given"


def _list_quality(report: Report) -> Iterator[str]:
    """Yield how often samples were taken, and what is wrong with the data; that nothing is where nothing is."""
    runs = [run.recording.run for run in report.timeline]
    intervals = [run.interval for run in runs if run.interval]
    yield f"a sample every {format_range(intervals, _format_interval)}" if intervals else "a single sample"
    gaps, steps = sum(len(run.quality.gaps) for run in runs), sum(len(run.quality.clock_steps) for run in runs)
    rejected = sum(each.rows for run in runs for each in run.quality.rejected)
    yield display.plural(gaps, "gap") if gaps else "no gap"
    yield f"{display.plural(rejected, 'line')} left out" if rejected else "no line lost"
    if steps:
        yield display.plural(steps, "backward step") + " of the clock"
    if any(run.notes for run in report.quality):
        yield "with notes"


def _format_interval(seconds: float) -> str:
    return display.duration(round(seconds, 1) if seconds < 10 else seconds)  # noqa: PLR2004 - three figures


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
    counts = Counter(row.cells[0].text for row in report.policy.rows)
    words = {word: "met" if outcome is CheckOutcome.PASSED else word for outcome, word in OUTCOME_WORDS.items()}
    parts = (f"{counts[word]} {shown}" for word, shown in words.items() if counts[word])
    return f"{display.plural(len(report.policy.rows), 'rule')}: {', '.join(parts)}"
