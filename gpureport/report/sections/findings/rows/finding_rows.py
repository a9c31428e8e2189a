"""Findings told once: one row for each kind and cause over all runs."""

from collections.abc import Sequence
from dataclasses import replace

from gpureport.analysis.rulebook import kinds_by_gpu_time_class
from gpureport.analysis.rules import RULES
from gpureport.comparison.verdicts.finding_changes import can_tell
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.finding_rows import FindingRow, RunMark
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings import advice_steps
from gpureport.report.sections.findings.next_actions import group_wording
from gpureport.report.sections.findings.rows import finding_caveats, range_wording, row_groups
from gpureport.report.sections.findings.rows.row_groups import RowGroup
from gpureport.report.sections.pictures.signal_history import build_finding_history
from gpureport.report.wording import display, terms
from gpureport.report.wording.grouping import group_holders
from gpureport.report.wording.ranges import format_gpu_time_range, format_range

FOUND, NOT_FOUND, NOT_ASSESSED = "found", "not found", "not assessed"
_NAMED = 3
"""Steps that are named one by one."""
_OF_THE_JOB = frozenset(
    kind
    for name, kinds in kinds_by_gpu_time_class(RULES).items()
    if name not in {"throttled", "gpu_lost"}
    for kind in kinds
)
"""Kinds that a change of the job ends; a sick GPU is as sick where a later step does not use it."""
_NO_LONGER_SHOWN = "Nothing left to do: {} no longer shows it. The advice was:"


def build_finding_rows(
    runs: Sequence[ReportRun], cards: Sequence[FindingCard], *, is_chain: bool
) -> tuple[FindingRow, ...]:
    """Return one row for each kind and cause: by severity, then by the GPU time that the worst run lost.

    Args:
        runs: the runs in the order of their steps.
        cards: the findings of each run.
        is_chain: whether each step builds on the one before; groups of runs stand side by side.
    """
    groups = row_groups.gather_row_groups(runs)
    places = {(group.kind, group.cause): place for place, group in enumerate(groups)}
    titles = [_title(group, groups) for group in groups]
    rows = []
    for place, group in enumerate(groups):
        roots = [places[root] for root in group.roots if root in places]
        followers = [at for at, each in enumerate(groups) if (group.kind, group.cause) in each.roots]
        relations = finding_caveats.list_relations([titles[at] for at in roots], [titles[at] for at in followers])
        own = [card for card in cards if _is_card_of(card, group)]
        row = _row(group, groups, runs, own, is_chain=is_chain)
        rows.append(
            replace(
                row,
                id=f"R{place + 1}",
                title=titles[place],
                caveats=(*relations, *row.caveats),
                root=f"R{roots[0] + 1}" if roots and None not in group.roots else "",
            )
        )
    return tuple(rows)


def _row(
    group: RowGroup,
    groups: Sequence[RowGroup],
    runs: Sequence[ReportRun],
    cards: Sequence[FindingCard],
    *,
    is_chain: bool,
) -> FindingRow:
    """Return a row without what depends on other rows: its number, its title and its relations."""
    several = len(runs) > 1
    marks = tuple(_mark(group, position, run) for position, run in enumerate(runs)) if several else ()
    gone_in = _find_step_without(marks) if is_chain and group.kind in _OF_THE_JOB else ""
    history = build_finding_history(group.worst.run, group.worst.findings)
    if history is not None and several:
        history = replace(history, title=f"{history.title}, worst run: {group.worst.run.label}")
    worst_first = sorted(cards, key=lambda card: -(card.lost_seconds or 0.0))
    return FindingRow(
        id="",
        kind=display.clean(group.kind),
        title="",
        severity=group.severity.value,
        confidence=group.confidence.value,
        runs=describe_runs(group, runs),
        extent=range_wording.describe_extent(group, several=several),
        summary=describe_findings(group, worst_first, several=several),
        cost=_describe_cost(group, several=several),
        advice=_describe_advice(group, groups, gone_in),
        caveats=finding_caveats.list_caveats(group),
        marks=marks,
        history=history,
        cards=tuple(card.id for card in worst_first),
    )


def _title(group: RowGroup, groups: Sequence[RowGroup]) -> str:
    """Return the kind in words, with its cause where the kind has several here."""
    title = terms.kind_title(display.shorten(display.clean(group.kind), 80), group.cause)
    causes = [each for each in groups if each.kind == group.kind]
    titles = {terms.kind_title(each.kind, each.cause) for each in causes}
    if len(causes) == len(titles):
        return title
    cause = display.shorten(display.clean(group.cause or "").replace("_", " "), 80)
    return f"{title} (cause: {cause or 'not named'})"


def _is_card_of(card: FindingCard, group: RowGroup) -> bool:
    return card.kind == display.clean(group.kind) and any(
        each.position == card.run_index and set(each.fingerprints) & set(card.fingerprints) for each in group.groups
    )


def describe_runs(group: RowGroup, runs: Sequence[ReportRun]) -> str:
    """Return in how many runs findings are, and in which steps; of a single run on which GPUs."""
    if len(runs) == 1:
        devices = dict.fromkeys(device for each in group.groups for device in each.devices)
        return runs[0].devices(list(devices))
    found, total = len(group.runs), len(runs)
    if found == total:
        return f"{found} of {total} runs"
    steps = list(dict.fromkeys(run.step for run in group.runs.values()))
    of_step = sum(run.step == steps[0] for run in runs)
    if len(steps) == 1 and of_step > 1:
        return f"{found} of {of_step} runs of {steps[0]}"
    more = [f"{len(steps) - _NAMED} more"] if len(steps) > _NAMED else []
    return f"{found} of {total} runs: {display.join_words([*steps[:_NAMED], *more])}"


def describe_findings(group: RowGroup, cards: Sequence[FindingCard], *, several: bool) -> str:
    """Return one sentence over all runs; of a single run, or where no range can be told, that of the worst finding.

    Args:
        group: the findings.
        cards: their cards, the worst first.
        several: whether the report holds several runs.
    """
    if several and len(group.runs) > 1 and (sentence := range_wording.describe_range(group)):
        return sentence
    own = cards[0].summary if cards else display.clean_sentence(group.worst.worst.summary)
    return f"In the worst run ({group.worst.run.label}): {own}" if len(group.runs) > 1 else own


def _describe_cost(group: RowGroup, *, several: bool) -> str:
    """Return the GPU time lost and what it cost; empty where it is not known or nothing."""
    amounts = [amount for amount in group.lost_by_run.values() if amount > 0]
    if not amounts:
        return ""
    a_run = " a run" if several else ""
    money = group_holders((each.position, each.cost) for each in group.groups if each.cost is not None)
    currency = next((cost.currency for run in group.runs.values() if (cost := run.analysis.cost)), "")
    parts = [f"{format_gpu_time_range(amounts)}{a_run}"]
    if money and len(money) == len(group.runs):
        costs = [sum(each) for each in money.values()]
        parts.append(f"{format_range(costs, lambda amount: display.money(amount, currency))}{a_run}")
    return ", ".join(parts)


def _describe_advice(group: RowGroup, groups: Sequence[RowGroup], gone_in: str) -> str:
    """Return what to do and how, or that nothing is left to do and what was; of a kind without words its first step."""
    stopped = row_groups.find_stopped_gpus(group, groups)
    wording = group_wording.choose_wording(group, groups, stopped)
    if wording is None:
        steps = advice_steps.build_advice_steps(group.findings)
        advice = steps[0].do if steps else display.clean_sentence(group.worst.worst.recommendation)
        return f"{_NO_LONGER_SHOWN.format(gone_in)} {display.lower_first(advice)}" if gone_in and advice else advice
    filled = group_wording.fill_wording(wording, group, stopped)
    if gone_in:
        return f"{_NO_LONGER_SHOWN.format(gone_in)} {display.lower_first(filled.title)}. {filled.how}"
    return f"{filled.title}: {display.lower_first(filled.how)}"


def _find_step_without(marks: Sequence[RunMark]) -> str:
    """Return the last step where all of its runs were looked at and have no such finding; else nothing."""
    last = [mark for mark in marks if mark.step == marks[-1].step]
    return last[0].step if last and {mark.outcome for mark in last} == {NOT_FOUND} else ""


def _mark(group: RowGroup, position: int, run: ReportRun) -> RunMark:
    found = position in group.runs
    assessed = can_tell(run.analysis, group.worst.worst)
    return RunMark(run=run.label, step=run.step, outcome=FOUND if found else NOT_FOUND if assessed else NOT_ASSESSED)
