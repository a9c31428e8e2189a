"""Findings gathered for reading: all of one kind and cause in one run are one card."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gpureport.analysis.advice.choose import STEPS
from gpureport.comparison import gains
from gpureport.comparison.changes import can_tell
from gpureport.findings import AdvisedStep, Evidence, Finding
from gpureport.report.model.finding_card import AdviceStep, EvidenceLine, FindingCard, Occurrence
from gpureport.report.runs.report_run import ReportRun, format_time
from gpureport.report.sections.findings.found import Found, gather, rank
from gpureport.report.wording import display, terms
from gpureport.report.wording.numbered_labels import group_holders

_OPEN = "open"
_LISTED = 100
_SIGNS = {"<=": "≤", ">=": "≥"}


def build_cards(runs: Sequence[ReportRun]) -> tuple[FindingCard, ...]:
    """Return the findings of all runs as cards: those of the last step first, the gravest first, then by lost GPU time.

    What follows from a finding comes right after it, whatever it lost itself, and so does the same of other runs.
    """
    groups = [group for found in gather(runs) for group in sorted(found.groups, key=rank)]
    causes = Counter((position, kind) for position, (kind, _) in {(group.position, group.key) for group in groups})
    cards = {group: _build_card(group, runs, has_causes=causes[group.position, group.key[0]] > 1) for group in groups}
    named = {(group.position, group.key): group for group in groups if None in group.roots}
    followed = ((each, named.get((each.position, key))) for each in groups for key in each.roots if key)
    roots = {each: root for each, root in followed if root}
    followers_of = group_holders((root, each) for each, root in roots.items())
    families = [(root, followers_of.get(root, [])) for root in groups if root not in roots]
    families.sort(key=lambda family: not any(cards[each].is_open for each in (family[0], *family[1])))
    ids = {each: f"F{at}" for at, each in enumerate((each for root, own in families for each in (root, *own)), 1)}
    said: dict[object, Found] = {}
    told = []
    for root, followers in families:
        card = cards[root]
        first = said.setdefault((card.title, card.severity, card.status, card.recommendations), root)
        repeats = ids[first] if first.position != root.position else ""
        told.append(replace(card, id=ids[root], explains=tuple(ids[each] for each in followers), repeats=repeats))
        for each in followers:
            own = cards[each]
            is_part = {*each.devices} <= {*(root.devices or each.devices)} and None not in {own.lost_seconds, root.lost}
            lost = f"{own.lost}, counted under {ids[root]}" if is_part else own.lost
            steps = tuple(step for step in own.steps if step not in card.steps)
            told.append(replace(own, id=ids[each], root=ids[root], lost=lost, steps=steps))
    return tuple(told)


def _build_card(group: Found, runs: Sequence[ReportRun], *, has_causes: bool) -> FindingCard:
    worst, run, status = group.finding, group.run, _describe_status(group, runs)
    named = f" (cause: {group.cause or 'not named'})" if has_causes else ""
    occurrences = list(_list_occurrences(group))
    held = run.analysis.job_gpu_seconds
    return FindingCard(
        id="",
        kind=display.clean(worst.kind),
        title=f"{group.title}{named}{f', {run.devices(group.devices)}' if group.devices else ''}",
        severity=group.severity.value,
        confidence=group.confidence.value,
        status=status,
        is_open=status == _OPEN,
        run=run.label if group.several else "",
        run_index=group.position,
        lost_seconds=group.lost,
        lost=_describe_lost(group),
        lost_ratio=group.lost / held if group.lost is not None and held else None,
        lost_at_least=bool(group.lost) and gains.loses_unknown_time(group.findings),
        lost_cost=group.cost_by_run.get(group.position),
        summary=_summarize(group),
        evidence=tuple(map(describe_evidence, worst.evidence)),
        recommendations=_clean_once(each.recommendation for each in group.findings),
        cause=group.cause,
        where=_describe_place(group, occurrences),
        count=len(group.findings),
        occurrences=tuple(occurrences[:_LISTED]),
        omitted=f"and {display.integer(len(occurrences) - _LISTED)} more" if len(occurrences) > _LISTED else "",
        ruled_out=_clean_once(worst.ruled_out),
        explains=(),
        fingerprints=group.fingerprints,
        steps=tuple(_list_steps(group.findings)),
    )


def _clean_once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(display.clean_sentence(text) for text in texts if text))


def _describe_status(group: Found, runs: Sequence[ReportRun]) -> str:
    """Return that a finding is open, or what the last step says about one of an earlier step."""
    final = [run.analysis for run in runs if run.step == runs[-1].step]
    if group.run.step == runs[-1].step:
        return _OPEN
    if any((each.kind, each.cause) == group.key for analysis in final for each in analysis.findings):
        return "still found in the last step"
    count = sum(can_tell(analysis, group.finding) for analysis in final)
    some = f"the {count} of {len(final)} runs of the last step that could be judged"
    return f"not found in {some if count < len(final) else 'the last step'}" if count else "the last step cannot tell"


def _describe_lost(group: Found) -> str:
    """Return the GPU time lost in words, as a share of the GPU time in which jobs held GPUs, and what it cost."""
    analysis, cost = group.run.analysis, group.cost_by_run.get(group.position)
    unknown, held = gains.loses_unknown_time(group.findings), analysis.job_gpu_seconds
    if not group.lost:
        return "loss not known" if unknown else "no direct loss"
    base = "the jobs' GPU time" if analysis.no_job_gpu_seconds else "the run"
    parts = [f"{display.percent(group.lost / held)} of {base}"] if held else []
    parts += [f"costs {display.money(cost, analysis.cost.currency)}"] if analysis.cost and cost is not None else []
    share = f" ({', '.join(parts)})" if parts else ""
    return f"{'at least' if unknown else 'up to'} {display.gpu_time(group.lost)}{share}"


def _summarize(group: Found) -> str:
    """Return the finding's own sentence, or for several how many there are and how long they last."""
    largest = terms.humanize(display.clean_sentence(group.finding.summary))
    gpus = len(group.run.run.gpus)
    held = [(each, span.seconds) for each in group.findings for span in group.run.held_stretches(each)]
    if len(group.findings) == 1 or not held:
        return largest if len(group.findings) == 1 else f"{count_findings(group)}. Largest: {largest}"
    length = display.duration(sum(seconds * (len(each.devices) or gpus) for each, seconds in held))
    longest = display.duration(max(seconds for _, seconds in held))
    whose = "in all" if len(group.devices) == 1 else "of GPU time"
    return f"{count_findings(group)}, {length} {whose}, the longest {longest}. Largest: {largest}"


def count_findings(group: Found) -> str:
    """Return how many there are, those that GPUs have at one time as one: `7 gaps`."""
    known = terms.DESCRIPTIONS.get(group.finding.kind)
    noun = (known.stretch if known else "") or ("period" if len(group.findings) > 1 else "")
    is_timed = noun and len(group.spans)
    return display.plural(len(group.spans), noun) if is_timed else display.plural(len(group.findings), "finding")


def _describe_place(group: Found, occurrences: Sequence[Occurrence]) -> str:
    if not occurrences:
        return "whole run"
    first, run, count = occurrences[0], group.run.run, len(group.spans)
    stamp = "" if run.quality.synthetic_time else format_time(run, min(span.start for span in group.intervals))
    if len(occurrences) == 1:
        return f"{first.device}, {first.text}{stamp and f', from {stamp}'}"
    times = f"{count} times, the first " if count > 1 else ""
    return f"{times}{display.elapsed(first.start)} after the start{stamp and f', at {stamp}'}"


def _list_occurrences(group: Found) -> Iterator[Occurrence]:
    """Yield every stretch in order of time, then of device."""
    run = group.run
    spans = [(span.start, span.end, run.devices(each.devices)) for each in group.findings for span in each.intervals]
    for begin, finish, device in sorted(spans):
        start, end = run.since_start(begin), run.since_start(finish)
        text = f"{display.elapsed(start)} to {display.elapsed(end)} ({display.duration(end - start)})"
        yield Occurrence(device=device, start=start, end=end, text=text)


def describe_evidence(evidence: Evidence) -> EvidenceLine:
    """Return a measured value in words, with its limit and the limit's origin."""
    limit, relation = evidence.threshold, _SIGNS.get(evidence.relation, evidence.relation) or "limit"
    words = (terms.column_title(display.clean(evidence.metric)), display.clean(evidence.statistic))
    return EvidenceLine(
        quantity=", ".join(filter(None, words)),
        observed=display.quantity(evidence.observed, evidence.unit),
        limit=f"{relation} {display.quantity(limit.value, limit.unit)}" if limit else "",
        source=f"{limit.provenance.value}: {display.clean_sentence(limit.source)}" if limit else "",
    )


def _list_steps(findings: Sequence[Finding]) -> Iterator[AdviceStep]:
    """Yield the steps of findings of one kind and cause, each once, with the fewest open preconditions."""
    chosen: dict[str, AdvisedStep] = {}
    for each in (each for finding in findings for each in finding.steps):
        if each.name not in chosen or len(each.unknown) < len(chosen[each.name].unknown):
            chosen[each.name] = each
    for name, advised in chosen.items():
        if name in STEPS:
            words = {part: getattr(STEPS[name], part) for part in ("name", "title", "when", "risk", "check", "source")}
            do = f"{STEPS[name].do} {advised.suggestion}".rstrip()
            yield AdviceStep(**words, do=do, unknown="; ".join(advised.unknown))
