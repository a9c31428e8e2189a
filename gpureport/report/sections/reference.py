"""Reference parts: checks that were not assessed, answers, rules, data quality, and terms."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from gpureport import __version__, recording_advice
from gpureport.analysis import doubts, phrases
from gpureport.analysis.advice.checklist import ITEMS
from gpureport.analysis.rulebook import Rule
from gpureport.comparison.figures import SHORTEST_SECONDS, observed_seconds
from gpureport.data_quality import AbsentCells, Quality
from gpureport.findings import Answer, Check, CheckOutcome, NotJudged, Outcome, Practice
from gpureport.metrics import BY_NAME
from gpureport.names import group_pairs
from gpureport.recording_advice import RECORD
from gpureport.report.model.report_content import (
    SCHEMA,
    AnswerLine,
    Answers,
    CheckLine,
    Checklist,
    FindingCard,
    Judgement,
    Method,
    NotJudgedLine,
    RunQuality,
)
from gpureport.report.model.shapes import Cell, Fact, Table, build_table
from gpureport.report.runs.over_time import FEW_GPUS, MOST_EVENTS, list_events
from gpureport.report.runs.report_run import LABEL_LENGTH, ReportRun, clock_note, format_gpu_models, format_period
from gpureport.report.sections.head import recording_doubts
from gpureport.report.wording import display, terms
from gpureport.report.wording.display import clean, clean_sentence, duration, plural

_FEW, _NAMED_GROUPS = 4, 3  # most named places, and groups of GPUs
_OUTCOMES = dict(zip(Outcome, ("found", "suspected", "clear", "not assessed"), strict=True))
STATES = {Practice.DONE: "done", Practice.WORTH_TRYING: "worth trying", Practice.CANNOT_JUDGE: "not assessed"}
_LOCATOR = 200
_NOTE = "A rule that was not assessed has neither passed nor failed; the table shows why."


def _doubt_short_runs(runs: Sequence[ReportRun]) -> Iterator[ReportRun]:
    """Mark other runs' findings as not assessed in runs too short to rule them out."""
    found = {finding.kind for run in runs for finding in run.analysis.findings}
    for run in runs:
        own, length = run.analysis, observed_seconds([run.analysis])
        known = {each.kind for each in own.findings} | {each.kind for each in own.not_judged}
        kinds = sorted(found - known) if length < SHORTEST_SECONDS else ()
        gaps = {kind: doubts.too_short(kind, length, SHORTEST_SECONDS) for kind in kinds}
        answers = (
            replace(each, outcome=Outcome.CANNOT_JUDGE, missing=(gaps[each.kind],)) if each.kind in gaps else each
            for each in own.answers
        )
        judged = replace(own, answers=tuple(answers), not_judged=(*own.not_judged, *gaps.values()))
        yield replace(run, analysis=judged)


def build_judgement(runs: Sequence[ReportRun], asked: Collection[str]) -> Judgement:
    """Return counts of checks. A check is missing if no run of some step could assess it."""
    steps = group_pairs((run.step, {entry.kind for entry in run.analysis.not_judged}) for run in runs)
    found = {finding.kind for run in runs for finding in run.analysis.findings}
    missing = set().union(*(set.intersection(*each) for each in steps.values())) - found
    partly = set().union(*(kinds for each in steps.values() for kinds in each)) - missing
    counts = {"found": len(found), "clear": len({*asked} - missing - found), "not assessed": len(missing)}
    checks = sum(counts.values())
    named = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    where = "in some runs" if len(runs) > 1 else "on some GPUs"
    named += f" ({len(partly)} {'more' if missing else 'not assessed'} {where})" if partly else ""
    sentence = f"{plural(checks, 'check')}: {named}."
    lacking = [entry for run in runs for entry in run.analysis.not_judged if RECORD in entry.recording]
    commands = recording_advice.list_raw_commands(name for entry in lacking for name in entry.metrics)
    command, *others = commands if lacking else ("",)
    return Judgement(
        sentence=sentence if checks > len(missing) else "No check could be run on this data.",
        checks=checks,
        missing=len(missing),
        partly=len(partly),
        lines=tuple(_list_missing([*_doubt_short_runs(runs)])),
        limits=tuple(dict.fromkeys(clean_sentence(limit) for run in runs for limit in run.analysis.limits)),
        advice=recording_advice.RECORDS_MISSING if lacking else "",
        command=command,
        other_commands=tuple(others),
    )


def _list_missing(runs: Sequence[ReportRun]) -> Iterator[NotJudgedLine]:
    cases = [(run, entry) for run in runs for entry in run.analysis.not_judged]
    # name the run if there are several, and the device unless all are meant
    named = [(run.label if len(runs) > 1 else "", run.device(e.device) if e.device else "") for run, e in cases]
    placed = zip(named, (entry for _, entry in cases), strict=True)
    by_kind = group_pairs(((entry.kind, _find_remedy(entry)), (place, entry)) for place, entry in placed)
    alike = group_pairs(
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
            kinds=tuple(terms.kind_title(clean(kind)) for kind, _ in held),
            where="" if {*places} == {(run.label, "") for run in runs} else _join_places(places, runs),
            reason="; ".join(_list_reasons(entries)),
            recording=clean(need),
        )


def _find_remedy(entry: NotJudged) -> object:
    if entry.needed_seconds is not None:
        return "longer"
    scopes = {BY_NAME[name].scope for name in entry.metrics}
    return (RECORD, *scopes) if entry.recording == RECORD and len(scopes) == 1 else f"other {entry.recording}"


def _list_reasons(entries: Sequence[NotJudged]) -> Iterator[str]:
    absent = [entry for entry in entries if entry.code == doubts.NOT_RECORDED]
    names = dict.fromkeys(terms.column_title(name) for entry in absent for name in entry.metrics)
    if names:
        yield f"Not recorded: {display.join_words(list(names))}"
    others = group_pairs((each.template or each.reason, each) for each in entries if each not in absent)
    for reason, same in others.items():
        ends = [(min(each)[1], max(each)[1]) for each in zip(*(entry.amounts for entry in same), strict=True)]
        # name the unit once
        named = [(least.split()[0] if most.endswith("samples") else least, least, most) for least, most in ends]
        ranges = [most if least == most else f"{first} to {most}" for first, least, most in named]
        text = terms.humanize(clean_sentence(reason.format(*ranges) if ranges else reason))
        about = {terms.kind_title(clean(entry.kind)): entry.kind for entry in same}
        whose = ", ".join(about) if {*about.values()} < {entry.kind for entry in entries} else ""
        yield display.join(whose, display.lower_first(text) if names or whose else text, by=": ")


def _join_places(places: Sequence[tuple[str, str]], runs: Sequence[ReportRun]) -> str:
    named = [display.join(*place, by=": ") for place in places if any(place)]
    count, more = len({label for label, _ in places}), len(named) - _FEW
    if len(runs) > 1 and count > _FEW:
        return f"{count} of {len(runs)} runs"
    return f"{', '.join(named[:_FEW])}{f' and {more} more' if more > 0 else ''}"


def build_answers(runs: Sequence[ReportRun], cards: Sequence[FindingCard]) -> Iterator[Answers]:
    for place, run in enumerate(_doubt_short_runs(runs)):
        answers, own = run.analysis.answers, [card for card in cards if card.run_index == place]
        groups = len({answer.group for answer in answers})
        lines = [_build_answer(each, run, own, several=groups > 1) for each in answers]
        counts = Counter(line.outcome for line in lines)
        named = [f"{counts[outcome]} {_OUTCOMES[outcome]}" for outcome in Outcome if counts[outcome]]
        # every check is assessed for each GPU model
        asked = f", assessed for each of {groups} groups of GPUs" if groups > 1 else ""
        shown = lines if len(run.run.gpus) <= FEW_GPUS else _merge_groups(lines, groups)
        if lines:
            yield Answers(label=run.label, summary=f"{', '.join(named)}{asked}", lines=tuple(shown))


def _build_answer(answer: Answer, run: ReportRun, cards: Sequence[FindingCard], *, several: bool) -> AnswerLine:
    kind = clean(answer.kind)
    return AnswerLine(
        kind=kind,
        title=terms.kind_title(kind),
        group=display.shorten(clean(answer.group), 60) if several else "",
        outcome=answer.outcome.value,
        outcome_text=_OUTCOMES[answer.outcome],
        cards=tuple(card.id for card in cards if card.kind == kind and {*card.fingerprints} & {*answer.findings}),
        reason=terms.humanize(clean_sentence(answer.reason_with(run.device))),
        reason_code=answer.reason_code,
        recording=clean(answer.recording),
    )


def _merge_groups(lines: Sequence[AnswerLine], groups: int) -> Iterator[AnswerLine]:
    of_kinds = group_pairs((line.kind, line) for line in lines)
    alike = group_pairs((replace(line, group=""), line.group) for same in of_kinds.values() for line in same)
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
                reason=terms.humanize(clean_sentence(entry.reason)),
                reason_code=entry.reason_code,
                recording=clean(entry.recording),
                state_text=STATES[entry.state],
            )
            for entry in run.analysis.checklist
        ]
        yield from [Checklist(label=run.label, lines=tuple(lines))] if lines else []


def method(runs: Sequence[ReportRun], rules: Sequence[Rule], command: str) -> Method:
    gpus = [gpu for run in runs for gpu in run.run.gpus]
    drivers = {display.shorten(clean(gpu.driver), LABEL_LENGTH) for gpu in gpus if gpu.driver}
    versions = {
        "gpureport": __version__,
        "Content schema": SCHEMA,
        "NVIDIA driver": ", ".join(sorted(drivers)) or display.NOT_RECORDED,
    }
    kinds = [(terms.kind_title(kind), text) for rule in rules for kind, text in rule.conditions.items()]
    inputs, rows = ("Run", "Kind", "Input, with its sha256"), []
    for run in runs:
        for source in run.run.sources:
            locator = display.shorten_middle(clean(source.locator), _LOCATOR)
            rows.append((run.label, clean(source.kind), Cell(text=locator, small=clean(source.sha256))))
    return Method(
        definitions=tuple(Fact(name=name, text=clean_sentence(text)) for name, text in terms.DEFINITIONS),
        command=clean(command),
        versions=tuple(Fact(name=name, text=text) for name, text in versions.items()),
        inputs=build_table(inputs, rows, in_words=inputs),
        kinds=tuple(Fact(name=name, text=clean_sentence(text)) for name, text in kinds),
    )


def build_policy_table(checks: Sequence[Check]) -> Table | None:
    if not checks:
        return None
    rows: list[list[Cell | str]] = []
    for check in checks:
        is_grave = check.outcome in {CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE}
        observed, reason = map(clean_sentence, (check.observed, check.reason))
        rule = Cell(text=clean(check.limit), small=PurePath(clean(check.origin)).name)
        outcome = Cell(text=terms.OUTCOME_WORDS[check.outcome], flagged=is_grave)
        rows.append([rule, outcome, Cell(text=observed, small=reason, value=check.value), clean(check.run)])
    columns = ("Rule", "Outcome", "Observed", "Run")
    note = _NOTE if any(check.outcome is CheckOutcome.CANNOT_JUDGE for check in checks) else ""
    return build_table(columns, rows, note, in_words=columns)


_LISTED = 12
_NEARLY_ALL = 0.9995  # Prints as 100%.
_LONGEST = 500  # Maximum length; the JSON is complete.


def quality(runs: Sequence[ReportRun]) -> Iterator[RunQuality]:
    counted = [run.run.quality for run in runs]
    # if no line was rejected, give the sum over all runs
    is_whole = all(each.accounted and not each.rejected for each in counted) and len({r.run.tracked for r in runs}) == 1
    for run in runs:
        lines = _describe_lines(counted if is_whole else [run.run.quality])
        more = len(run.run.quality.log_events) - MOST_EVENTS
        yield RunQuality(
            label=run.label,
            facts=tuple(Fact(name=name, text=text) for name, text in _list_facts(run, lines) if text),
            notes=tuple(map(clean_sentence, run.run.quality.notes)),
            events=tuple(list_events(run)),
            more_events=f"{plural(more, 'more event')}; the JSON of gpureport analyze lists all." if more > 0 else "",
        )


def _list_facts(run: ReportRun, lines: str) -> Iterator[tuple[str, str]]:
    data, info, length = run.run.quality, run.run, duration(run.seconds)
    noun = "point" if info.tracked else "line"
    period = f"{length} in all" if data.synthetic_time else f"{format_period(info, info.started, info.ended)}, {length}"
    yield "GPUs", format_gpu_models(info.gpus) or "none recorded"
    yield "Hosts", str(len(info.hosts) or "not recorded")
    yield "Recorded", period
    yield "Times", clock_note(info)
    for name, pairs in (("Params", info.params), ("Tags", info.tags)):
        said = ", ".join(f"{clean(key)} = {clean(value)}" for key, value in pairs)
        yield name, display.shorten(said, _LONGEST)
    yield "Jobs", recording_doubts.job_list(info, run.analysis.jobs) if len(run.analysis.jobs) > 1 else ""
    single = f"One sample {'of each device' if len(info.devices) > 1 else 'in all'}."
    yield "Sampling", single if info.interval is None else f"A sample every {duration(info.interval)}."
    yield from _list_gap_facts(run)
    yield f"{noun.capitalize()}s", lines
    rejected = [
        f"{plural(each.rows, noun)}: {clean(each.reason)}"
        + ("" if each.first_line is None else f" (first: line {each.first_line})")
        for each in data.rejected
    ]
    yield "Rejected", display.join_first(rejected, _LISTED, "reason")
    yield "Absent values", display.join_first(list(_describe_absent(run, data.absent_cells)), _LISTED, "kind")
    yield "Repeated stamps", f"{plural(data.duplicates, 'row')}, kept" if data.duplicates else ""
    restored = data.imputed_points
    yield "Restored values", f"{plural(restored, 'value')} that the recorder omitted" if restored else ""
    steps = []
    for step in data.clock_steps:
        back = duration(abs(step.step_seconds))
        at = display.elapsed(run.since_start(step.at))
        done = "put in order" if step.cause == "log restarted" else "repaired"
        steps.append(f"{run.device(step.device)} stepped back {back} at {at} ({clean(step.cause)}), {done}")
    yield "Clock", display.join_first(steps, _LISTED, "step")


def _describe_absent(run: ReportRun, absent: Sequence[AbsentCells]) -> Iterator[str]:
    every = run.samples * len(run.run.gpus)
    columns = group_pairs(((entry.cells, entry.reason), entry.column) for entry in absent)
    for (cells, reason), held in columns.items():
        named = [display.shorten_middle(terms.column_title(clean(each)), LABEL_LENGTH) for each in held]
        count = "every value" if cells == every else plural(cells, "value")
        yield f"{count} ({clean(reason)}) of {display.join_words(named)}"


def _describe_lines(counted: Sequence[Quality]) -> str:
    def count(name: str) -> int:
        return sum(getattr(each, name) for each in counted)

    parts = {
        "kept as samples": count("rows_kept"),
        "rejected": sum(entry.rows for each in counted for entry in each.rejected),
        "header" if count("headers") == 1 else "headers": count("headers"),
        "without data": count("noise"),
        "driver message" if count("events") == 1 else "driver messages": count("events"),
        "further lines of these rows": count("continued"),
    }
    shown = " + ".join(
        f"{display.integer(count)} {name}" for name, count in parts.items() if count or name == "rejected"
    )
    total = f"{display.integer(count('lines'))} read = {shown}"
    doubt = "" if all(each.accounted for each in counted) else "; the parts do not add up: please report this log"
    return f"{total}{f', in {len(counted)} runs' if len(counted) > 1 else ''}{doubt}"


def _list_gap_facts(run: ReportRun) -> Iterator[tuple[str, str]]:
    covered, pauses, gaps = run.analysis.coverage_ratio, run.analysis.pauses, run.run.quality.gaps
    if covered is not None and covered > _NEARLY_ALL and pauses is None and not gaps:
        yield "Coverage", "No gaps."
        return
    share = display.or_not_recorded(covered, display.percent)
    share += " of the time from the first to the last sample is covered" if covered is not None else ""
    if pauses:
        count = plural(pauses.count, "pause")
        longest = duration(pauses.longest_seconds)
        share += f"; {duration(pauses.seconds)} is not: {count} of up to {longest}, too short to count as a gap"
    yield "Coverage", share
    if gaps and not run.run.quality.synthetic_time:
        gap = max(gaps, key=lambda gap: gap.end - gap.start)
        length = duration((gap.end - gap.start) / 1e6)
        at = display.elapsed(run.since_start(gap.start))
        yield "Longest gap", f"{length}, {run.device(gap.device)} at {at}"
