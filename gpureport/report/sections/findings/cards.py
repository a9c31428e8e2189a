"""Finding cards, one per kind and cause in a run, and rows, one per kind and cause across runs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from gpureport.analysis.advice.choose import STEPS
from gpureport.analysis.rulebook import KINDS
from gpureport.comparison import gains
from gpureport.comparison.changes import can_tell
from gpureport.findings import AdvisedStep, Confidence, Evidence, Finding
from gpureport.names import group_pairs
from gpureport.report.model.report_content import AdviceStep, EvidenceLine, FindingCard, FindingRow, Occurrence, RunMark
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun, format_time
from gpureport.report.sections.findings import found as words
from gpureport.report.sections.findings.found import Found, Key
from gpureport.report.sections.signal_history import build_history
from gpureport.report.wording import display, terms
from gpureport.report.wording.words import name_some

_OPEN = "open"
_LISTED, _NAMED = 100, 3  # most listed intervals, and named steps
_OUTCOMES = {True: "not found", False: "not assessed"}
_SIGNS = {"<=": "≤", ">=": "≥"}
_STAYING = {"throttled", "gpu_lost", ""}
"""Classes of GPU time whose findings still apply after the job changes."""
_COARSE_SECONDS = 2.0  # above this, one sample per second would show more


def build_cards(runs: Sequence[ReportRun]) -> Iterator[FindingCard]:
    """Yield cards sorted by severity and loss, last step first. Consequences follow their root."""
    every = words.gather(runs)
    titles = _name_all(every)
    groups = [group for found in every for group in sorted(found.groups, key=words.rank)]
    named = {(group.position, group.key): group for group in groups if None in group.roots}
    followed = ((each, named.get((each.position, key))) for each in groups for key in each.roots if key)
    roots = {each: root for each, root in followed if root}
    followers = group_pairs((root, each) for each, root in roots.items())
    families = [(root, *followers.get(root, ())) for root in groups if root not in roots]
    families.sort(key=lambda family: all(each.run.step != runs[-1].step for each in family))
    ids = {each: f"F{at}" for at, each in enumerate(chain.from_iterable(families), 1)}
    said: dict[object, FindingCard] = {}
    for root, *own in families:
        card = replace(_build_card(root, runs, titles), id=ids[root], explains=tuple(ids[each] for each in own))
        first = said.setdefault((card.title, card.severity, card.status, card.recommendations), card)
        yield replace(card, repeats=first.id if first.run_index != card.run_index else "")
        for each in own:
            follower = _build_card(each, runs, titles)
            is_part = {*each.devices} <= {*(root.devices or each.devices)} and None not in {each.lost, root.lost}
            lost = f"{follower.lost}, counted under {card.id}" if is_part else follower.lost
            steps = tuple(step for step in follower.steps if step not in card.steps)
            yield replace(follower, id=ids[each], root=card.id, lost=lost, steps=steps)


def _name_all(every: Sequence[Found]) -> dict[Key, str]:
    # distinguish identical titles by the cause in brackets
    alike = Counter((found.finding.kind, found.title) for found in every)
    causes = [f" (cause: {each.cause or 'not named'})" if alike[each.key[0], each.title] > 1 else "" for each in every]
    return {found.key: f"{found.title}{cause}" for found, cause in zip(every, causes, strict=True)}


def _build_card(group: Found, runs: Sequence[ReportRun], titles: Mapping[Key, str]) -> FindingCard:
    worst, run, analysis, status = group.finding, group.run, group.run.analysis, _describe_status(group, runs)
    occurrences, left = list(_list_occurrences(group)), len(group.intervals) - _LISTED
    cost = group.cost_by_run.get(group.position)
    is_least, lost, share = bool(gains.list_unmeasured_kinds(group.findings)), "no direct loss", list[str]()
    if group.lost:
        share = [f"{display.percent(group.share)} of {gpu_time.name_base([run])}"] if group.shares else []
        share += [f"costs {display.money(cost, analysis.cost.currency)}"] if analysis.cost and cost is not None else []
        lost = f"{'at least' if is_least else 'up to'} {display.gpu_time(group.lost)}"
    elif is_least:
        lost = "loss not known"
    advice = (display.clean_sentence(each.recommendation) for each in group.findings if each.recommendation)
    return FindingCard(
        id="",
        kind=display.clean(worst.kind),
        title=f"{titles[group.key]}{f', {run.devices(group.devices)}' if group.devices else ''}",
        severity=group.severity.value,
        confidence=group.confidence.value,
        status=status,
        is_open=status == _OPEN,
        run=run.label if group.several else "",
        run_index=group.position,
        lost_seconds=group.lost,
        lost=f"{lost} ({', '.join(share)})" if share else lost,
        lost_ratio=group.share if group.shares else None,
        lost_at_least=bool(group.lost) and is_least,
        lost_cost=cost,
        summary=_summarize(group),
        evidence=tuple(map(_describe_evidence, worst.evidence)),
        recommendations=tuple(dict.fromkeys(advice)),
        cause=group.cause,
        where=_describe_place(group, occurrences),
        count=len(group.findings),
        occurrences=tuple(occurrences[:_LISTED]),
        omitted=f"and {display.integer(left)} more" if left > 0 else "",
        ruled_out=tuple(dict.fromkeys(map(display.clean_sentence, worst.ruled_out))),
        explains=(),
        fingerprints=group.fingerprints,
        steps=tuple(_list_steps(group.findings)),
    )


def _describe_status(group: Found, runs: Sequence[ReportRun]) -> str:
    final = [run.analysis for run in runs if run.step == runs[-1].step]
    if group.run.step == runs[-1].step:
        return _OPEN
    if any((each.kind, each.cause) == group.key for analysis in final for each in analysis.findings):
        return "still found in the last step"
    count = sum(can_tell(analysis, group.finding) for analysis in final)
    some = f"the {count} of {len(final)} runs of the last step that could be assessed"
    return f"not found in {some if count < len(final) else 'the last step'}" if count else "unknown in the last step"


def _summarize(group: Found) -> str:
    largest = terms.humanize(display.clean_sentence(group.finding.summary))
    count = len(group.findings)
    if count == 1:
        return largest
    known, run = terms.DESCRIPTIONS.get(group.finding.kind), group.run
    noun = (known.stretch if known else "") or "period"
    said = display.plural(len(group.spans), noun) if len(group.spans) else display.plural(count, "finding")
    held = [(len(each.devices) or len(run.run.gpus), run.job_intervals(each)) for each in group.findings]
    lengths = [(gpus, span.seconds) for gpus, spans in held for span in spans]
    if lengths:
        length = display.duration(sum(gpus * seconds for gpus, seconds in lengths))
        longest = display.duration(max(seconds for _, seconds in lengths))
        said += f", {length} {'in all' if len(group.devices) == 1 else 'of GPU time'}, the longest {longest}"
    return f"{said}. Largest: {largest}"


def _describe_place(group: Found, occurrences: Sequence[Occurrence]) -> str:
    if not occurrences:
        return "whole run"
    first, run, count = occurrences[0], group.run.run, len(group.spans)
    # the data quality section shows the dates of several runs
    has_date = not (run.quality.synthetic_time or group.several)
    stamp = format_time(run, min(span.start for span in group.intervals)) if has_date else ""
    times = f"{count} times, the first " if count > 1 else ""
    if len(occurrences) == 1:
        return display.join(first.device, first.text, stamp and f"from {stamp}", by=", ")
    return display.join(f"{times}{display.elapsed(first.start)} after the start", stamp and f"at {stamp}", by=", ")


def _list_occurrences(group: Found) -> Iterator[Occurrence]:
    run = group.run
    for span, device in sorted((each, run.devices(one.devices)) for one in group.findings for each in one.intervals):
        start, end = run.since_start(span.start), run.since_start(span.end)
        text = f"{display.elapsed(start)} to {display.elapsed(end)} ({display.duration(end - start)})"
        yield Occurrence(device=device, start=start, end=end, text=text)


def _describe_evidence(evidence: Evidence) -> EvidenceLine:
    limit = evidence.threshold
    relation = _SIGNS.get(evidence.relation, evidence.relation) or "limit"
    names = terms.column_title(display.clean(evidence.metric)), display.clean(evidence.statistic)
    return EvidenceLine(
        quantity=display.join(*names, by=", "),
        observed=display.quantity(evidence.observed, evidence.unit),
        limit=f"{relation} {display.quantity(limit.value, limit.unit)}" if limit else "",
        source=f"{limit.provenance.value}: {display.clean_sentence(limit.source)}" if limit else "",
    )


def _list_steps(findings: Sequence[Finding]) -> Iterator[AdviceStep]:
    chosen: dict[str, AdvisedStep] = {}
    for each in (each for finding in findings for each in finding.steps):
        if each.name not in chosen or len(each.unknown) < len(chosen[each.name].unknown):
            chosen[each.name] = each
    for name, advised in chosen.items():
        if name in STEPS:
            said = {part: getattr(STEPS[name], part) for part in ("name", "title", "when", "risk", "check", "source")}
            do = f"{STEPS[name].do} {advised.suggestion}".rstrip()
            yield AdviceStep(**said, do=do, unknown="; ".join(advised.unknown))


def build_rows(runs: Sequence[ReportRun], cards: Sequence[FindingCard], *, is_chain: bool) -> Iterator[FindingRow]:
    """Yield a row per kind and cause, sorted by severity and loss."""
    every = words.gather(runs)
    titles = _name_all(every)
    ids = {key: f"R{place}" for place, key in enumerate(titles, 1)}
    for found in every:
        marks = []
        for at, run in enumerate(runs if found.several else ()):
            outcome = "found" if at in found.runs else _OUTCOMES[can_tell(run.analysis, found.finding)]
            marks.append(RunMark(run=run.label, step=run.step, outcome=outcome))
        is_gone = is_chain and {mark.outcome for mark in marks if mark.step == runs[-1].step} == {"not found"}
        history = build_history(found.run, found.worst.findings, is_cropped=True)
        # without a known loss, no run is the worst
        which = f"in {'the worst' if found.lost else 'one'} run ({found.run.label})"
        if history is not None and found.several:
            history = replace(history, title=f"{history.title}, {which}")
        groups = {(group.position, group.fingerprints) for group in found.groups}
        own = [each for each in cards if (each.run_index, each.fingerprints) in groups]
        worst = f"{display.raise_first(which)}: " if len(found.runs) > 1 else ""
        summary = (words.describe_finding(found) if worst else "") or worst + _summarize(found.worst)
        amounts = [lost for lost in found.lost_by_run.values() if lost > 0]
        priced = found.cost_by_run
        costs = [display.format_gpu_time_range(amounts)] if amounts else []
        if amounts and len(priced) == len(found.runs):
            currency = next((cost.currency for run in found.runs.values() if (cost := run.analysis.cost)), "")
            costs.append(display.format_range(priced.values(), partial(display.money, currency=currency)))
        follows = [title for key, title in titles.items() if key in found.roots]
        explains = [titles[each.key] for each in every if found.key in each.roots]
        relations = (("It follows from", follows), ("It explains", explains))
        said = [f"{how}: {display.join_words(to)}." for how, to in relations if to]
        yield FindingRow(
            id=ids[found.key],
            kind=display.clean(found.finding.kind),
            title=titles[found.key],
            severity=found.severity.value,
            confidence=found.confidence.value,
            runs=_describe_runs(found, runs),
            extent=words.fill_words(found, words.find_words(found, "extent", words.LOST))
            or words.fill_words(found, words.LOST),
            summary=summary,
            cost=", ".join(f"{part}{' per run' if found.several else ''}" for part in costs),
            advice=_describe_advice(found, every, runs[-1].step if is_gone else ""),
            caveats=(*said, *dict.fromkeys(_list_caveats(found))),
            marks=tuple(marks),
            history=history,
            cards=tuple(card.id for card in own),
            root="" if None in found.roots else next((ids[key] for key in found.roots if key in ids), ""),
        )


def _describe_runs(found: Found, runs: Sequence[ReportRun]) -> str:
    count, steps = len(found.runs), list(dict.fromkeys(run.step for run in found.runs.values()))
    if not found.several:
        return runs[0].devices(found.devices)
    if count == len(runs):
        return f"{count} of {count} runs"
    of_step = sum(run.step == steps[0] for run in runs)
    if len(steps) == 1 and of_step > 1:
        return f"{count} of {of_step} runs of {steps[0]}"
    return f"{count} of {len(runs)} runs: {name_some(steps, _NAMED)}"


def _describe_advice(found: Found, every: Sequence[Found], gone_in: str) -> str:
    advice, kind = words.advise(found, every), KINDS.get(found.finding.kind)
    title, how = (advice.title, advice.how) if advice else ("", display.clean_sentence(found.finding.recommendation))
    if gone_in and kind and kind.gpu_time_class not in _STAYING:
        was = display.lower_first(f"{title}. {how}" if title else how)
        return f"Nothing is left to do: {gone_in} no longer has this finding. The advice was: {was}"
    return f"{title}: {display.lower_first(how)}" if title else how


def _list_caveats(found: Found) -> Iterator[str]:
    for reason in found.finding.ruled_out:
        yield f"Not {display.lower_first(display.clean_sentence(reason).rstrip('.'))}."
    if found.confidence is not Confidence.HIGH:
        coarse = any((run.run.interval or 0.0) > _COARSE_SECONDS for run in found.runs.values())
        dense = "record one sample per second" if coarse else ""
        sure = display.join(dense, words.find_words(found, "sure") or "", by=" and ")
        why = f"to be sure, {sure}" if sure else "the log shows this only indirectly, or in few samples"
        yield f"Confidence {found.confidence.value}: {why}."
