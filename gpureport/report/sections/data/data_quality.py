"""What became of every line that was read, and what a reader must know about the data."""

from collections.abc import Iterator, Sequence

from gpureport.analysis.results import Pauses
from gpureport.data_quality import LogGap, Quality
from gpureport.report.model.report_content import RunQuality
from gpureport.report.model.shapes import Fact
from gpureport.report.runs import log_events, sampling_wording
from gpureport.report.runs.report_run import LABEL_LENGTH, ReportRun, clock_note, format_gpu_models, format_period
from gpureport.report.sections.head import job_sentences
from gpureport.report.wording import display, terms

_LISTED = 12
_NEARLY_ALL = 0.9995
"""Share of the time from which coverage prints as all of it."""

_LONGEST = 500
"""Characters of params or tags that are shown; the JSON has them all."""


def quality(runs: Sequence[ReportRun]) -> tuple[RunQuality, ...]:
    """Return one entry a run."""
    return tuple(
        RunQuality(
            label=run.label,
            facts=tuple(_facts(run)),
            notes=tuple(_notes(run.run.quality)),
            events=log_events.list_events(run),
            more_events=log_events.describe_omitted(run),
        )
        for run in runs
    )


def _facts(run: ReportRun) -> Iterator[Fact]:
    data, info = run.run.quality, run.run
    yield Fact(name="GPUs", text=format_gpu_models(info.gpus) if info.gpus else "none recorded")
    yield Fact(name="Hosts", text=str(len(info.hosts)) if info.hosts else "not recorded")
    yield Fact(name="Recorded", text=_recorded(run))
    for name, pairs in (("Params", info.params), ("Tags", info.tags)):
        if pairs:
            text = ", ".join(f"{display.clean(key)} = {display.clean(value)}" for key, value in pairs)
            yield Fact(name=name, text=display.shorten(text, _LONGEST))
    if len(run.analysis.jobs) > 1:
        yield Fact(name="Jobs", text=job_sentences.job_list(info, run.analysis.jobs))
    yield Fact(name="Sampling", text=_sampling(run))
    yield from _gap_facts(run)
    yield Fact(name="Points" if info.tracked else "Lines", text=_lines(data, "point" if info.tracked else "line"))
    if data.rejected:
        yield Fact(name="Rejected", text="; ".join(_rejected(data, "point" if info.tracked else "line")))
    if data.absent_cells:
        yield Fact(name="Absent values", text="; ".join(_absent(data)))
    if data.duplicates:
        yield Fact(name="Repeated stamps", text=f"{display.plural(data.duplicates, 'row')}, kept")
    if data.imputed_points:
        yield Fact(name="Restored values", text=f"{display.plural(data.imputed_points, 'value')} the recorder drops")
    if data.clock_steps:
        yield Fact(name="Clock", text="; ".join(_clock_steps(run)))


def _gap_facts(run: ReportRun) -> Iterator[Fact]:
    """Yield that there is no gap, or how much samples cover and where the longest gap is."""
    covered, pauses, gaps = run.analysis.coverage_ratio, run.analysis.pauses, run.run.quality.gaps
    if covered is not None and covered > _NEARLY_ALL and pauses is None and not gaps:
        yield Fact(name="Coverage", text="No gap.")
        return
    yield Fact(name="Coverage", text=display.or_not_recorded(covered, _coverage) + _pauses(pauses))
    if gaps and not run.run.quality.synthetic_time:
        yield Fact(name="Longest gap", text=_longest_gap(run))


def _recorded(run: ReportRun) -> str:
    info, length = run.run, display.duration(run.seconds)
    if info.quality.synthetic_time:
        return f"{length} in all; {clock_note(info)}"
    return f"{format_period(info, info.started, info.ended)}, {length}; {clock_note(info)}"


def _sampling(run: ReportRun) -> str:
    info = run.run
    if info.interval is None:
        return "One sample of each device." if len(info.devices) > 1 else "One sample in all."
    return f"A sample {sampling_wording.describe_sampling(run)}."


def _coverage(ratio: float) -> str:
    return f"{display.percent(ratio)} of the time from first to last sample lies near a sample"


def _pauses(pauses: Pauses | None) -> str:
    """Return what no sample owns though it is no gap; empty where there is nothing."""
    if pauses is None:
        return ""
    count, longest = display.plural(pauses.count, "pause"), display.duration(pauses.longest_seconds)
    return f"; {display.duration(pauses.seconds)} does not: {count} of up to {longest}, too short for a gap"


def _longest_gap(run: ReportRun) -> str:
    gaps = run.run.quality.gaps
    stretches = _stretches(gaps)
    longest = max(gaps, key=lambda gap: gap.end - gap.start)
    devices = [gap.device for gap in next(stretch for stretch in stretches if longest in stretch)]
    seconds = (longest.end - longest.start) / 1e6
    at = display.elapsed(run.since_start(longest.start))
    count = display.plural(len(stretches), "gap")
    return f"{display.duration(seconds)}, {_devices(run, devices)} at {at}; {count} in all"


def _stretches(gaps: Sequence[LogGap]) -> list[list[LogGap]]:
    """Return the gaps, those of several devices that overlap as one stretch."""
    stretches: list[list[LogGap]] = []
    end = 0
    for gap in sorted(gaps, key=lambda gap: gap.start):
        if not stretches or gap.start >= end:
            stretches.append([])
        stretches[-1].append(gap)
        end = max(end, gap.end)
    return stretches


def _devices(run: ReportRun, devices: Sequence[str]) -> str:
    gpus = {gpu.id for gpu in run.run.gpus}
    found = [device for device in devices if device in gpus]
    hosts = [run.device(device) for device in dict.fromkeys(devices) if device not in gpus]
    return display.join_words([*([run.devices(found)] if found else []), *hosts])


def _lines(data: Quality, noun: str) -> str:
    """Return whether anything was lost, then the sum that every line is part of."""
    rejected = sum(entry.rows for entry in data.rejected)
    parts = [
        (data.rows_kept, "kept as samples"),
        (rejected, "rejected"),
        (data.headers, "header" if data.headers == 1 else "headers"),
        (data.noise, "without data"),
        (data.events, "driver message" if data.events == 1 else "driver messages"),
        (data.continued, "further lines of these rows"),
    ]
    shown = [f"{display.integer(count)} {name}" for count, name in parts if count or name == "rejected"]
    unaccounted = "" if data.accounted else "; the parts do not add up, please report this log"
    total = f"{display.integer(data.lines)} read = {' + '.join(shown)}{unaccounted}"
    if rejected or not data.accounted:
        return total
    return f"Complete: {display.plural(data.rows_kept, 'sample')}, no {noun} lost. {total}"


def _rejected(data: Quality, noun: str) -> Iterator[str]:
    for entry in data.rejected[:_LISTED]:
        first = "" if entry.first_line is None else f" (first: line {entry.first_line})"
        yield f"{display.plural(entry.rows, noun)}: {display.clean(entry.reason)}{first}"
    if len(data.rejected) > _LISTED:
        yield display.plural(len(data.rejected) - _LISTED, "more reason")


def _absent(data: Quality) -> Iterator[str]:
    for entry in data.absent_cells[:_LISTED]:
        name = display.shorten_middle(terms.column_title(display.clean(entry.column)), LABEL_LENGTH)
        yield f"{name}: {display.plural(entry.cells, 'value')} ({display.clean(entry.reason)})"
    if len(data.absent_cells) > _LISTED:
        yield display.plural(len(data.absent_cells) - _LISTED, "more column")


def _clock_steps(run: ReportRun) -> Iterator[str]:
    steps = run.run.quality.clock_steps
    for step in steps[:_LISTED]:
        at = display.elapsed(run.since_start(step.at))
        back = display.duration(abs(step.step_seconds))
        done = "put in order" if step.cause == "log restarted" else "repaired"
        yield f"{run.device(step.device)} stepped back {back} at {at} ({display.clean(step.cause)}), {done}"
    if len(steps) > _LISTED:
        yield display.plural(len(steps) - _LISTED, "more step")


def _notes(data: Quality) -> Iterator[str]:
    for note in data.notes:
        yield display.clean_sentence(note)
