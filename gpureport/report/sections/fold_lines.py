"""What each fold of a report holds, in one line: the reader opens a fold only where that line makes it worth while."""

from collections import Counter

from gpureport.findings import CheckOutcome, Outcome
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Fact
from gpureport.report.wording import display
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS

_SLOWING_KINDS = {"thermal_throttle", "hw_throttle"}
_LINE = 60
"""Most characters of a line taken over from elsewhere."""


def build_fold_lines(report: Report) -> tuple[Fact, ...]:
    """Return a statement for each fold of a report: its name, and what it holds."""
    runs, counts = report.timeline, Counter(row.severity for row in report.rows)
    found = [display.plural(counts[word], word) for word in ("problem", "warning") if counts[word]]
    found += [f"{counts['info']} info"] if counts["info"] else []
    lengths = display.format_range((run.seconds for run in runs), display.duration)
    has_one_gpu = {len(run.table.rows) for run in report.gpus} == {1}
    lines = {
        "Findings": (", ".join(found) or "none") + (f" in {len(runs)} runs" if report.several else ""),
        "Timeline": _describe_timeline(report),
        "Every run" if report.several else "The GPU" if has_one_gpu else "Per GPU": (
            f"{len(runs)} runs, {lengths}" if report.several else _describe_gpus(report)
        ),
        "Not assessed": _describe_judgement(report),
        "Policy": _describe_policy(report),
        "Method": "how the figures were made, and what the words mean",
    }
    return tuple(Fact(name=name, text=text) for name, text in lines.items() if text)


def _describe_timeline(report: Report) -> str:
    strips, undrawn = sum(len(run.strips) for run in report.timeline), sum(run.undrawn_gpus for run in report.timeline)
    if not strips:
        return "a single moment: nothing to draw"
    gpus = f"{strips} of {strips + undrawn} GPUs" if undrawn else display.plural(strips, "GPU")
    return f"every sample of {f'{len(report.timeline)} runs' if report.several else gpus}, to zoom into"


def _describe_gpus(report: Report) -> str:
    """Return which GPU stands apart; where none does, that none was slowed, if that is known of every run."""
    outliers = [line for run in report.gpus for line in run.outliers]
    if outliers:
        more = f"; {len(outliers) - 1} more" if len(outliers) > 1 else ""
        return display.shorten(outliers[0].partition(":")[0], _LINE) + more
    slowing = {(line.kind, line.outcome) for run in report.answers for line in run.lines if line.kind in _SLOWING_KINDS}
    is_never = slowing == {(kind, Outcome.JUDGED.value) for kind in _SLOWING_KINDS}
    return "never slowed by heat or hardware" if is_never else "clock, temperature, power, memory and utilisation"


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
