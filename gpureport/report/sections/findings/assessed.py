"""What was looked for and what was not assessed: an empty list of findings must never read as good health."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from gpureport import recording_advice
from gpureport.analysis import doubts, phrases
from gpureport.analysis.advice.checklist import ITEMS
from gpureport.findings import Answer, NotJudged, Outcome, Practice
from gpureport.metrics import BY_NAME
from gpureport.recording_advice import RECORD
from gpureport.report.model.findings import FindingCard
from gpureport.report.model.report_content import AnswerLine, Answers, CheckLine, Checklist, Judgement, NotJudgedLine
from gpureport.report.runs.over_time import FEW_GPUS
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display, terms
from gpureport.report.wording.words import group_holders

_FEW, _NAMED_GROUPS = 4, 3  # places and groups of GPUs that are named one by one
_OUTCOMES = dict(zip(Outcome, ("found", "suspected", "clear", "not assessed"), strict=True))
STATES = {Practice.DONE: "done", Practice.WORTH_TRYING: "worth trying", Practice.CANNOT_JUDGE: "not assessed"}
"""Answers to the questions of the practice as people read them; JSON keeps its own words."""


def build_judgement(runs: Sequence[ReportRun], asked: Collection[str]) -> Judgement:
    """Return how many checks were assessed, which were not, and what to record, once for all of it.

    A check is missing where some step could not assess it in any of its runs, and partly missing where some run could
    not. `asked` are the kinds that were to be looked for.
    """
    steps = group_holders((run.step, {entry.kind for entry in run.analysis.not_judged}) for run in runs)
    found = {finding.kind for run in runs for finding in run.analysis.findings}
    missing = set().union(*(set.intersection(*each) for each in steps.values())) - found
    partly = set().union(*(kinds for each in steps.values() for kinds in each)) - missing
    counts = {"found": len(found), "clear": len({*asked} - missing - found), "not assessed": len(missing)}
    checks, named = sum(counts.values()), ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    where = "in some runs" if len(runs) > 1 else "on some GPUs"
    named += f" ({len(partly)} {'more' if missing else 'not assessed'} {where})" if partly else ""
    sentence = f"{display.plural(checks, 'check')}: {named}."
    lacking = [entry for run in runs for entry in run.analysis.not_judged if RECORD in entry.recording]
    commands = recording_advice.list_raw_commands(name for entry in lacking for name in entry.metrics)
    command, *others = commands if lacking else ("",)
    return Judgement(
        sentence=sentence if checks > len(missing) else "No check could be made with this data.",
        checks=checks,
        missing=len(missing),
        partly=len(partly),
        lines=tuple(_list_missing(runs)),
        limits=tuple(dict.fromkeys(display.clean_sentence(limit) for run in runs for limit in run.analysis.limits)),
        advice=recording_advice.RECORDS_MISSING if lacking else "",
        command=command,
        other_commands=tuple(others),
    )


def _list_missing(runs: Sequence[ReportRun]) -> Iterator[NotJudgedLine]:
    cases = [(run, entry) for run in runs for entry in run.analysis.not_judged]
    # a run is named where there are several, a device where not all are meant
    named = [(run.label if len(runs) > 1 else "", run.device(e.device) if e.device else "") for run, e in cases]
    placed = zip(named, (entry for _, entry in cases), strict=True)
    by_kind = group_holders(((entry.kind, _find_remedy(entry)), (place, entry)) for place, entry in placed)
    alike = group_holders(
        ((remedy, tuple(dict.fromkeys(place for place, _ in same))), (kind, same))
        for (kind, remedy), same in by_kind.items()
    )
    for (_, places), held in alike.items():
        entries = [entry for _, same in held for _, entry in same]
        needed = sorted(entry.needed_seconds for entry in entries if entry.needed_seconds is not None)
        need = "" if entries[0].recording == RECORD else entries[0].recording
        if needed:
            more = f"; for all of them, at least {phrases.duration(needed[-1])}" if needed[-1] > needed[0] else ""
            need = f"{doubts.name_length(needed[0])}{more}"
        yield NotJudgedLine(
            kinds=tuple(terms.kind_title(display.clean(kind)) for kind, _ in held),
            where="" if {*places} == {(run.label, "") for run in runs} else _join_places(places, runs),
            reason="; ".join(_list_reasons(entries)),
            recording=display.clean(need),
        )


def _find_remedy(entry: NotJudged) -> object:
    if entry.needed_seconds is not None:
        return "longer"
    scopes = {BY_NAME[name].scope for name in entry.metrics}
    return (RECORD, *scopes) if entry.recording == RECORD and len(scopes) == 1 else f"other {entry.recording}"


def _list_reasons(entries: Sequence[NotJudged]) -> Iterator[str]:
    """Yield each reason once: what was not recorded in one list, and others with the range of their amounts."""
    absent = [entry for entry in entries if entry.code == doubts.NOT_RECORDED]
    names = dict.fromkeys(terms.column_title(name) for entry in absent for name in entry.metrics)
    if names:
        yield f"Not recorded: {display.join_words(list(names))}"
    others = group_holders((each.template or each.reason, each.amounts) for each in entries if each not in absent)
    for reason, amounts in others.items():
        ends = [(min(each)[1], max(each)[1]) for each in zip(*amounts, strict=True)]
        # what is counted is named once
        named = [(least.split()[0] if most.endswith("samples") else least, least, most) for least, most in ends]
        ranges = [most if least == most else f"{first} to {most}" for first, least, most in named]
        text = terms.humanize(display.clean_sentence(reason.format(*ranges) if ranges else reason))
        yield display.lower_first(text) if names else text


def _join_places(places: Sequence[tuple[str, str]], runs: Sequence[ReportRun]) -> str:
    named = [": ".join(filter(None, place)) for place in places if any(place)]
    count, more = len({label for label, _ in places}), len(named) - _FEW
    if len(runs) > 1 and count > _FEW:
        return f"{count} of {len(runs)} runs"
    return f"{', '.join(named[:_FEW])}{f' and {more} more' if more > 0 else ''}"


def build_answers(runs: Sequence[ReportRun], cards: Sequence[FindingCard]) -> Iterator[Answers]:
    """Yield every kind of every run, with the cards of what was found; without runs whose answers are not known."""
    for place, run in enumerate(runs):
        answers, own = run.analysis.answers, [card for card in cards if card.run_index == place]
        groups = len({answer.group for answer in answers})
        lines = [_build_answer(each, run, own, several=groups > 1) for each in answers]
        counts = Counter(line.outcome for line in lines)
        named = [f"{counts[outcome]} {_OUTCOMES[outcome]}" for outcome in Outcome if counts[outcome]]
        # each model is asked every question
        asked = f", {groups} groups of GPUs asked one by one" if groups > 1 else ""
        shown = lines if len(run.run.gpus) <= FEW_GPUS else _merge_groups(lines, groups)
        if lines:
            yield Answers(label=run.label, summary=f"{', '.join(named)}{asked}", lines=tuple(shown))


def _build_answer(answer: Answer, run: ReportRun, cards: Sequence[FindingCard], *, several: bool) -> AnswerLine:
    kind = display.clean(answer.kind)
    return AnswerLine(
        kind=kind,
        title=terms.kind_title(kind),
        group=display.shorten(display.clean(answer.group), 60) if several else "",
        outcome=answer.outcome.value,
        outcome_text=_OUTCOMES[answer.outcome],
        cards=tuple(card.id for card in cards if card.kind == kind and {*card.fingerprints} & {*answer.findings}),
        reason=terms.humanize(display.clean_sentence(answer.reason_with(run.device))),
        reason_code=answer.reason_code,
        recording=display.clean(answer.recording),
    )


def _merge_groups(lines: Sequence[AnswerLine], groups: int) -> Iterator[AnswerLine]:
    of_kinds = group_holders((line.kind, line) for line in lines)
    alike = group_holders((replace(line, group=""), line.group) for same in of_kinds.values() for line in same)
    for line, names in alike.items():
        named = "; ".join(names) if len(names) <= _NAMED_GROUPS else f"{len(names)} of {groups} groups of GPUs"
        yield replace(line, group="" if len(names) == groups else named)


def build_checklists(runs: Sequence[ReportRun]) -> Iterator[Checklist]:
    for run in runs:
        lines = [
            CheckLine(
                item=entry.item,
                title=ITEMS.get(entry.item, entry.item),
                state=entry.state.value,
                reason=terms.humanize(display.clean_sentence(entry.reason)),
                reason_code=entry.reason_code,
                recording=display.clean(entry.recording),
                state_text=STATES[entry.state],
            )
            for entry in run.analysis.checklist
        ]
        yield from [Checklist(label=run.label, lines=tuple(lines))] if lines else []
