"""What each fold of a report holds, in one line: the reader opens a fold only where that line makes it worth while."""

from collections import Counter
from collections.abc import Iterator

from gpureport.findings import CheckOutcome, Outcome
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Fact
from gpureport.report.sections.findings.assessed import STATES
from gpureport.report.wording import display
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS

_SLOWING_KINDS = {"thermal_throttle", "hw_throttle"}
_LINE = 90
"""Most characters of a line taken over from elsewhere."""


def build_fold_lines(report: Report) -> tuple[Fact, ...]:
    """Return a statement for each fold of a report: its name, and what it holds."""
    comparison, runs = report.comparison, report.timeline
    several, has_one_gpu = len(runs) > 1, {len(run.table.rows) for run in report.gpus} == {1}
    parts = "groups" if comparison is not None and comparison.grouped else "steps"
    pairs = display.plural(len(comparison.links), "comparison") if comparison is not None else ""
    has_gains = comparison is not None and comparison.gains is not None
    lengths = display.format_range((run.seconds for run in runs), display.duration)
    of_one = report.gpu_time[0].total if report.gpu_time else ""
    counts = Counter(row.severity for row in report.rows)
    found = [display.plural(counts[word], word) for word in ("problem", "warning") if counts[word]]
    found += [f"{counts['info']} info"] if counts["info"] else []
    answered = Counter(line.state for line in report.checklists[-1].lines) if report.checklists else Counter[str]()
    lines = {
        "Findings": (", ".join(found) or "none") + (f" in {len(runs)} runs" if several else ""),
        "Timeline": _describe_timeline(report),
        "Gains": "what each step gained, and what that rests on" if has_gains else "",
        f"Changes between {parts}": f"every figure before and after, in {pairs}" if pairs else "",
        "Every run" if several else "GPU time in figures": f"{len(runs)} runs, {lengths}" if several else of_one,
        "The GPU" if has_one_gpu else "Per GPU": _describe_gpus(report),
        "Energy and cost": _describe_spending(report),
        "Data quality": ", ".join(_list_quality(report)),
        "Not assessed": _describe_judgement(report),
        "Checklist": ", ".join(f"{answered[state]} {word}" for state, word in STATES.items() if answered[state]),
        "Policy": _describe_policy(report),
        "Also worth knowing": display.plural(len(report.verdict.notes), "note") if report.verdict.notes else "",
        "Method": "how the figures were made, and every limit with its origin",
    }
    return tuple(Fact(name=name, text=text) for name, text in lines.items() if text)


def _describe_timeline(report: Report) -> str:
    strips, undrawn = sum(len(run.strips) for run in report.timeline), sum(run.undrawn_gpus for run in report.timeline)
    if not strips:
        return "a single moment: nothing to draw"
    gpus = f"{strips} of {strips + undrawn} GPUs" if undrawn else display.plural(strips, "GPU")
    return f"every sample of {f'{len(report.timeline)} runs' if len(report.timeline) > 1 else gpus}, to zoom into"


def _describe_gpus(report: Report) -> str:
    """Return which GPU stands apart; where none does, that none was slowed, if that is known of every run."""
    outliers = [line for run in report.gpus for line in run.outliers]
    if outliers:
        more = f"; {len(outliers) - 1} more" if len(outliers) > 1 else ""
        return display.shorten(outliers[0].partition(":")[0], _LINE) + more
    slowing = {(line.kind, line.outcome) for run in report.answers for line in run.lines if line.kind in _SLOWING_KINDS}
    is_never = slowing == {(kind, Outcome.JUDGED.value) for kind in _SLOWING_KINDS}
    return "never slowed by heat or hardware" if is_never else "clock, temperature, power, memory and utilisation"


def _describe_spending(report: Report) -> str:
    """Return the energy of a single run; of several only what the fold holds."""
    facts = {fact.name: fact.text for run in report.spending for fact in run.facts}
    if not facts or len(report.spending) > 1:
        return "energy and cost of each run" if facts else ""
    return facts.get("Energy", "").partition(" by ")[0] or "energy not recorded"


def _list_quality(report: Report) -> Iterator[str]:
    """Yield how often samples were taken, and what is wrong with the data; that nothing is where nothing is."""
    runs = [run.recording.run for run in report.timeline]
    intervals = [run.interval if run.interval >= 10 else round(run.interval, 1) for run in runs if run.interval]  # noqa: PLR2004 - three figures
    yield f"a sample every {display.format_range(intervals, display.duration)}" if intervals else "a single sample"
    gaps, steps = sum(len(run.quality.gaps) for run in runs), sum(len(run.quality.clock_steps) for run in runs)
    rejected = sum(each.rows for run in runs for each in run.quality.rejected)
    yield display.plural(gaps, "gap") if gaps else "no gap"
    yield f"{display.plural(rejected, 'line')} left out" if rejected else "no line lost"
    if steps:
        yield f"{display.plural(steps, 'backward step')} of the clock"
    if any(run.notes for run in report.quality):
        yield "with notes"


def _describe_judgement(report: Report) -> str:
    found = report.judgement
    if not found.missing:
        whole = f"all {found.checks} assessed" if found.checks else ""
        return f"{found.partly} of {found.checks} checks in part" if found.partly else whole
    return f"{found.missing} of {found.checks} checks{f', {found.partly} more in part' if found.partly else ''}"


def _describe_policy(report: Report) -> str:
    if report.policy is None:
        return ""
    counts = Counter(row.cells[0].text for row in report.policy.rows)
    words = {word: "met" if outcome is CheckOutcome.PASSED else word for outcome, word in OUTCOME_WORDS.items()}
    parts = ", ".join(f"{counts[word]} {shown}" for word, shown in words.items() if counts[word])
    return f"{display.plural(len(report.policy.rows), 'rule')}: {parts}"
