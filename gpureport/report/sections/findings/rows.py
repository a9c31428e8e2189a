"""Findings told once: one row for each kind and cause over all runs, with its range and its caveats."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpureport.analysis.kinds import KINDS
from gpureport.comparison.changes import can_tell
from gpureport.findings import Confidence
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.finding_rows import FindingRow, RunMark
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings.found import Found, gather
from gpureport.report.sections.findings.words import LOST, advise, find_words, tell, tell_finding
from gpureport.report.sections.pictures.signal_history import build_finding_history
from gpureport.report.wording import display
from gpureport.report.wording.display import format_gpu_time_range, format_range

_NAMED = 3
"""Steps that are named one by one."""
_STAYING = {"throttled", "gpu_lost", ""}
"""Classes of GPU time whose kinds a change of the job does not end: a sick GPU is as sick where no step uses it."""
_NO_LONGER_SHOWN = "Nothing left to do: {} no longer shows it. The advice was:"
_COARSE_SECONDS = 2.0
"""Time between samples from which a sample a second would tell more."""


def build_rows(runs: Sequence[ReportRun], cards: Sequence[FindingCard], *, is_chain: bool) -> tuple[FindingRow, ...]:
    """Return one row for each kind and cause: by severity, then by the GPU time that the worst run lost.

    Args:
        runs: the runs in the order of their steps.
        cards: the findings of each run.
        is_chain: whether each step builds on the one before; groups of runs stand side by side.
    """
    every = gather(runs)
    titles = [_name(found, every) for found in every]
    ids = {found.key: f"R{place}" for place, found in enumerate(every, 1)}
    rows = []
    for title, found in zip(titles, every, strict=True):
        row = _build_row(found, every, runs, cards, is_chain=is_chain)
        follows = [titles[at] for at, each in enumerate(every) if each.key in found.roots]
        explains = [titles[at] for at, each in enumerate(every) if found.key in each.roots]
        relations = [("It follows from", follows), ("It explains", explains)]
        said = (f"{how}: {display.join_words(to)}." for how, to in relations if to)
        root = next((ids[key] for key in found.roots if key in ids), "") if None not in found.roots else ""
        rows.append(replace(row, id=ids[found.key], title=title, caveats=(*said, *row.caveats), root=root))
    return tuple(rows)


def _name(found: Found, every: Sequence[Found]) -> str:
    """Return the kind in words, with its cause where the kind has several here."""
    alike = [each for each in every if (each.finding.kind, each.title) == (found.finding.kind, found.title)]
    return found.title if len(alike) == 1 else f"{found.title} (cause: {found.cause or 'not named'})"


def _build_row(
    found: Found, every: Sequence[Found], runs: Sequence[ReportRun], cards: Sequence[FindingCard], *, is_chain: bool
) -> FindingRow:
    """Return a row without what depends on other rows: its number, its title and its relations."""
    marks = tuple(_mark(found, at, run) for at, run in enumerate(runs)) if found.several else ()
    last = [mark for mark in marks if mark.step == runs[-1].step]
    is_gone = is_chain and {mark.outcome for mark in last} == {"not found"}
    history = build_finding_history(found.run, found.worst.findings)
    if history is not None and found.several:
        history = replace(history, title=f"{history.title}, worst run: {found.run.label}")
    named = {(group.position, group.fingerprints) for group in found.groups}
    own = [each for each in cards if (each.run_index, each.fingerprints) in named]
    return FindingRow(
        id="",
        kind=display.clean(found.finding.kind),
        title="",
        severity=found.severity.value,
        confidence=found.confidence.value,
        runs=_describe_runs(found, runs),
        extent=tell(found, find_words(found, "extent", LOST)) or tell(found, LOST),
        summary=_summarize(found, own[0].summary),
        cost=_describe_cost(found),
        advice=_describe_advice(found, every, last[0].step if is_gone else ""),
        caveats=tuple(dict.fromkeys(_list_caveats(found))),
        marks=marks,
        history=history,
        cards=tuple(card.id for card in own),
    )


def _mark(found: Found, position: int, run: ReportRun) -> RunMark:
    outcome = "not found" if can_tell(run.analysis, found.finding) else "not assessed"
    return RunMark(run=run.label, step=run.step, outcome="found" if position in found.runs else outcome)


def _describe_runs(found: Found, runs: Sequence[ReportRun]) -> str:
    """Return in how many runs findings are, and in which steps; of a single run on which GPUs."""
    count, steps = len(found.runs), list(dict.fromkeys(run.step for run in found.runs.values()))
    if not found.several:
        return runs[0].devices(found.devices)
    if count == len(runs):
        return f"{count} of {count} runs"
    of_step = sum(run.step == steps[0] for run in runs)
    if len(steps) == 1 and of_step > 1:
        return f"{count} of {of_step} runs of {steps[0]}"
    more = [f"{len(steps) - _NAMED} more"] if len(steps) > _NAMED else []
    return f"{count} of {len(runs)} runs: {display.join_words([*steps[:_NAMED], *more])}"


def _summarize(found: Found, own: str) -> str:
    """Return one sentence over all runs; of a single run, or where no range can be told, that of the worst finding."""
    if len(found.runs) == 1:
        return own
    return tell_finding(found) or f"In the worst run ({found.run.label}): {own}"


def _describe_cost(found: Found) -> str:
    """Return the GPU time lost and what it cost; empty where it is not known or nothing."""
    amounts, costs = [lost for lost in found.lost_by_run.values() if lost > 0], found.cost_by_run
    currency = next((cost.currency for run in found.runs.values() if (cost := run.analysis.cost)), "")
    parts = [format_gpu_time_range(amounts)] if amounts else []
    if amounts and len(costs) == len(found.runs):
        parts.append(format_range(costs.values(), lambda amount: display.money(amount, currency)))
    return ", ".join(f"{part}{' a run' if found.several else ''}" for part in parts)


def _describe_advice(found: Found, every: Sequence[Found], gone_in: str) -> str:
    """Return what to do and how, or that nothing is left to do and what was."""
    advice = advise(found, every)
    kind = KINDS.get(found.finding.kind)
    title, how = (advice.title, advice.how) if advice else ("", display.clean_sentence(found.finding.recommendation))
    if gone_in and kind and kind.gpu_time_class not in _STAYING:
        return f"{_NO_LONGER_SHOWN.format(gone_in)} {display.lower_first(f'{title}. {how}' if title else how)}"
    return f"{title}: {display.lower_first(how)}" if title else how


def _list_caveats(found: Found) -> Iterator[str]:
    """Yield what was ruled out, and what would settle doubts."""
    for reason in found.finding.ruled_out:
        yield f"Not {display.lower_first(display.clean_sentence(reason).rstrip('.'))}."
    if found.confidence is not Confidence.HIGH:
        coarse = any((run.run.interval or 0.0) > _COARSE_SECONDS for run in found.runs.values())
        sure = find_words(found, "sure") or ("record a sample per second" if coarse else "")
        why = f"to be sure, {sure}" if sure else "it is inferred from several columns or few samples"
        yield f"Confidence {found.confidence.value}: {why}."
