"""How the report came about: limits, terms, versions and inputs, rules a person set, and what became of every line."""

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from gpureport.analysis.rulebook import Rule
from gpureport.data_quality import AbsentCells, ClockStep, LogGap, Quality
from gpureport.findings import Check, CheckOutcome
from gpureport.report.model.report_content import SCHEMA, Method, RunQuality
from gpureport.report.model.shapes import Cell, Fact, Table, build_table
from gpureport.report.runs import over_time
from gpureport.report.runs.report_run import LABEL_LENGTH, ReportRun, clock_note, format_gpu_models, format_period
from gpureport.report.sections.head import recording_doubts
from gpureport.report.wording import display, terms
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS
from gpureport.report.wording.words import group_holders

_LOCATOR = 200
_NOTE = "A rule that is not assessed is neither kept nor broken: the reason stands with it."


def method(runs: Sequence[ReportRun], rules: Sequence[Rule], command: str, version: str) -> Method:
    gpus = [gpu for run in runs for gpu in run.run.gpus]
    drivers = {display.shorten(display.clean(gpu.driver), LABEL_LENGTH) for gpu in gpus if gpu.driver}
    versions = {
        "gpureport": display.clean(version),
        "Content schema": SCHEMA,
        "NVIDIA driver": ", ".join(sorted(drivers)) or display.NOT_RECORDED,
    }
    kinds = [(terms.kind_title(kind), text) for rule in rules for kind, text in rule.conditions.items()]
    inputs, rows = ("Run", "Kind", "Input"), []
    for run in runs:
        for source in run.run.sources:
            locator = display.shorten_middle(display.clean(source.locator), _LOCATOR)
            read = Cell(text=locator, small=f"sha256 {display.clean(source.sha256)}")
            rows.append((run.label, display.clean(source.kind), read))
    return Method(
        definitions=tuple(Fact(name=name, text=display.clean_sentence(text)) for name, text in terms.DEFINITIONS),
        command=display.clean(command),
        versions=tuple(Fact(name=name, text=text) for name, text in versions.items()),
        inputs=build_table(inputs, rows, in_words=inputs),
        kinds=tuple(Fact(name=name, text=display.clean_sentence(text)) for name, text in kinds),
    )


def build_policy_table(checks: Sequence[Check]) -> Table | None:
    """Return the limits that a person set, in the order stated, and what became of each; None where none is."""
    if not checks:
        return None
    rows: list[list[Cell | str]] = []
    for check in checks:
        is_grave = check.outcome in {CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE}
        observed, reason = map(display.clean_sentence, (check.observed, check.reason))
        rule = Cell(text=display.clean(check.limit), small=PurePath(display.clean(check.origin)).name)
        outcome = Cell(text=OUTCOME_WORDS[check.outcome], flagged=is_grave)
        rows.append([rule, outcome, Cell(text=observed, small=reason, value=check.value), display.clean(check.run)])
    columns = ("Rule", "Outcome", "Observed", "Run")
    note = _NOTE if any(check.outcome is CheckOutcome.CANNOT_JUDGE for check in checks) else ""
    return build_table(columns, rows, note, in_words=columns)


# --- data quality


_LISTED = 12
_NEARLY_ALL = 0.9995
"""Share of the time from which coverage prints as all of it."""
_LONGEST = 500
"""Characters of params or tags that are shown; the JSON has them all."""


def quality(runs: Sequence[ReportRun]) -> tuple[RunQuality, ...]:
    return tuple(
        RunQuality(
            label=run.label,
            facts=tuple(Fact(name=name, text=text) for name, text in _list_facts(run) if text),
            notes=tuple(map(display.clean_sentence, run.run.quality.notes)),
            events=over_time.list_events(run),
            more_events=over_time.describe_omitted(run),
        )
        for run in runs
    )


def _list_facts(run: ReportRun) -> Iterator[tuple[str, str]]:
    data, info, length = run.run.quality, run.run, display.duration(run.seconds)
    noun = "point" if info.tracked else "line"
    period = f"{length} in all" if data.synthetic_time else f"{format_period(info, info.started, info.ended)}, {length}"
    yield "GPUs", format_gpu_models(info.gpus) or "none recorded"
    yield "Hosts", str(len(info.hosts) or "not recorded")
    yield "Recorded", period
    yield "Times", clock_note(info)
    for name, pairs in (("Params", info.params), ("Tags", info.tags)):
        said = ", ".join(f"{display.clean(key)} = {display.clean(value)}" for key, value in pairs)
        yield name, display.shorten(said, _LONGEST)
    yield "Jobs", recording_doubts.job_list(info, run.analysis.jobs) if len(run.analysis.jobs) > 1 else ""
    single = f"One sample {'of each device' if len(info.devices) > 1 else 'in all'}."
    yield "Sampling", single if info.interval is None else f"A sample every {display.duration(info.interval)}."
    yield from _list_gap_facts(run)
    yield f"{noun.capitalize()}s", _describe_lines(data, noun)
    firsts = ["" if each.first_line is None else f" (first: line {each.first_line})" for each in data.rejected]
    rejected = [
        f"{display.plural(each.rows, noun)}: {display.clean(each.reason)}{first}"
        for each, first in zip(data.rejected, firsts, strict=True)
    ]
    yield "Rejected", display.join_first(rejected, _LISTED, "reason")
    yield "Absent values", display.join_first(list(_describe_absent(run, data.absent_cells)), _LISTED, "kind")
    yield "Repeated stamps", f"{display.plural(data.duplicates, 'row')}, kept" if data.duplicates else ""
    restored = data.imputed_points
    yield "Restored values", f"{display.plural(restored, 'value')} the recorder drops" if restored else ""
    yield "Clock", display.join_first([_describe_clock_step(run, step) for step in data.clock_steps], _LISTED, "step")


def _describe_absent(run: ReportRun, absent: Sequence[AbsentCells]) -> Iterator[str]:
    every = run.samples * len(run.run.gpus)
    columns = group_holders(((entry.cells, entry.reason), entry.column) for entry in absent)
    for (cells, reason), held in columns.items():
        named = [display.shorten_middle(terms.column_title(display.clean(each)), LABEL_LENGTH) for each in held]
        count = "every value" if cells == every else display.plural(cells, "value")
        yield f"{count} ({display.clean(reason)}) of {display.join_words(named)}"


def _describe_clock_step(run: ReportRun, step: ClockStep) -> str:
    back, at = display.duration(abs(step.step_seconds)), display.elapsed(run.since_start(step.at))
    done = "put in order" if step.cause == "log restarted" else "repaired"
    return f"{run.device(step.device)} stepped back {back} at {at} ({display.clean(step.cause)}), {done}"


def _describe_lines(data: Quality, noun: str) -> str:
    """Return whether anything was lost, then the sum that every line is part of."""
    rejected = sum(entry.rows for entry in data.rejected)
    parts = {
        "kept as samples": data.rows_kept,
        "rejected": rejected,
        "header" if data.headers == 1 else "headers": data.headers,
        "without data": data.noise,
        "driver message" if data.events == 1 else "driver messages": data.events,
        "further lines of these rows": data.continued,
    }
    shown = " + ".join(
        f"{display.integer(count)} {name}" for name, count in parts.items() if count or name == "rejected"
    )
    total = f"{display.integer(data.lines)} read = {shown}"
    if not data.accounted:
        return f"{total}; the parts do not add up, please report this log"
    return total if rejected else f"{total}: no {noun} lost"


def _list_gap_facts(run: ReportRun) -> Iterator[tuple[str, str]]:
    """Yield that there is no gap, or how much samples cover and where the longest gap is."""
    covered, pauses, gaps = run.analysis.coverage_ratio, run.analysis.pauses, run.run.quality.gaps
    if covered is not None and covered > _NEARLY_ALL and pauses is None and not gaps:
        yield "Coverage", "No gap."
        return
    share = display.or_not_recorded(covered, display.percent)
    share += " of the time from first to last sample lies near a sample" if covered is not None else ""
    if pauses:
        # what no sample owns though it is no gap
        count, longest = display.plural(pauses.count, "pause"), display.duration(pauses.longest_seconds)
        share += f"; {display.duration(pauses.seconds)} does not: {count} of up to {longest}, too short for a gap"
    yield "Coverage", share
    if gaps and not run.run.quality.synthetic_time:
        yield "Longest gap", _describe_longest_gap(run, gaps)


def _describe_longest_gap(run: ReportRun, gaps: Sequence[LogGap]) -> str:
    """Return when the longest gap is, and how many there are; gaps of several devices that overlap are one."""
    longest, count, end = max(gaps, key=lambda gap: gap.end - gap.start), 0, 0
    for gap in sorted(gaps, key=lambda gap: gap.start):
        count += not count or gap.start >= end
        end = max(end, gap.end)
    length, at = display.duration((longest.end - longest.start) / 1e6), display.elapsed(run.since_start(longest.start))
    return f"{length}, {run.device(longest.device)} at {at}; {display.plural(count, 'gap')} in all"
