"""Where the GPU time went: sums per class, and bars of their shares."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from gpureport.analysis import results
from gpureport.analysis.results import GPU_TIME_CLASSES, LOST_CLASSES, Analysis, GpuTime, sum_seconds_by_class
from gpureport.comparison import gains
from gpureport.names import group_pairs
from gpureport.report.model.pictures import ClassShare, TimeBar
from gpureport.report.model.shapes import Cell, Table, build_table
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display, terms

_MAX_SINGLE = 16
NO_JOB = "no job"


def seconds_by_class(times: Iterable[GpuTime]) -> dict[str, float]:
    seconds = sum_seconds_by_class(time.seconds for time in times)
    known = [name for name in GPU_TIME_CLASSES if seconds.get(name, 0) > 0]
    return {name: seconds[name] for name in (*known, *sorted({*seconds} - {*GPU_TIME_CLASSES}))}


def seconds_by_cause(times: Iterable[GpuTime]) -> dict[str, dict[str, float]]:
    seconds: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for time in times:
        for part in time.parts:
            seconds[part.name][part.cause] += part.seconds
    ranked = ((name, sorted(causes.items(), key=lambda each: (-each[1], each[0]))) for name, causes in seconds.items())
    return {name: dict(causes) for name, causes in ranked}


def job_gpu_seconds(analyses: Iterable[Analysis]) -> float:
    return sum(analysis.job_gpu_seconds for analysis in analyses)


def no_job_gpu_seconds(analyses: Iterable[Analysis]) -> float:
    return sum(analysis.no_job_gpu_seconds for analysis in analyses)


def name_base(runs: Iterable[ReportRun], whole: str = "") -> str:
    """Return what shares refer to, in words."""
    analyses = [run.analysis for run in runs]
    named = whole or ("the jobs' time" if no_job_gpu_seconds(analyses) else "the run")
    return "the observed time" if any(is_mostly_unseen([each]) for each in analyses) else named


def sum_classes(analyses: Iterable[Analysis]) -> dict[str, float]:
    return seconds_by_class(time for analysis in analyses for time in analysis.gpu_time)


def lost_ratios(analyses: Sequence[Analysis]) -> dict[str, float]:
    """Return lost shares, largest first."""
    seconds, base = sum_classes(analyses), measure_base(analyses)
    ranked = sorted(seconds, key=lambda name: -seconds[name])
    return {name: seconds[name] / base for name in ranked if base and name in LOST_CLASSES}


def unobserved_ratio(analyses: Sequence[Analysis]) -> float:
    held = job_gpu_seconds(analyses)
    return sum_classes(analyses).get("no_samples", 0.0) / held if held else 0.0


def is_mostly_unseen(analyses: Sequence[Analysis]) -> bool:
    return unobserved_ratio(analyses) > gains.MOST_UNSEEN_RATIO


def measure_base(analyses: Sequence[Analysis]) -> float:
    """Return the job time, or its observed part if most of it has no data."""
    return job_gpu_seconds(analyses) * (1 - unobserved_ratio(analyses) if is_mostly_unseen(analyses) else 1)


def measure_own_seconds(time: GpuTime) -> float:
    """Return the base of shares for one GPU."""
    is_partly_seen = 0 < time.seen_seconds < (1 - gains.MOST_UNSEEN_RATIO) * time.job_seconds
    return time.seen_seconds if is_partly_seen else time.job_seconds


def short_pauses_ratio(analyses: Sequence[Analysis]) -> float:
    return results.measure_pauses_ratio(sum_classes(analyses))


def excessive_short_pauses(analyses: Iterable[Analysis]) -> float | None:
    return gains.measure_excessive_short_pauses(sum_classes(analyses))


def format_held(held: float, runs: int) -> str:
    return display.gpu_time(held / runs) + (" per run" if runs > 1 else "")


def format_base(analyses: Sequence[Analysis]) -> str:
    said = format_held(measure_base(analyses), len(analyses))
    return f"the {said} observed" if is_mostly_unseen(analyses) else said


def build_time_bars(runs: Sequence[ReportRun]) -> tuple[TimeBar, ...]:
    held = group_pairs((run.step, run.analysis.gpu_time) for run in runs)
    bars = [_bar(step, list(chain(*times)), runs=len(times)) for step, times in held.items()]
    if len(runs) == 1:
        (run,), times = runs, runs[0].analysis.gpu_time
        several = 1 < len(times) <= _MAX_SINGLE
        bars = [_bar("all GPUs" if len(times) > 1 else run.device(times[0].device), times)] if times else []
        bars += [_bar(run.device(time.device), [time], whole=False) for time in times if several]
    return tuple(filter(None, bars))


def class_labels(bars: Sequence[TimeBar]) -> dict[str, str]:
    found = {part.key: part.label for bar in bars for part in bar.parts}
    return {key: found[key] for key in (*GPU_TIME_CLASSES, *sorted({*found} - {*GPU_TIME_CLASSES})) if key in found}


def build_time_table(bars: Sequence[TimeBar]) -> Table:
    labels, rows = class_labels(bars), []
    extra = [NO_JOB] if any(bar.no_job for bar in bars) else []
    for bar in bars:
        parts = {part.key: part for part in bar.parts}
        row = [Cell(text=bar.label), Cell(text=bar.total)]
        for part in map(parts.get, labels):
            small = display.join(part.hours, part.causes if bar.whole else "") if part else ""
            text, value = (part.text, part.ratio) if part else (display.percent(0.0), 0.0)
            row.append(Cell(text=text, small=small, value=value))
        row += [Cell(text=bar.no_job or "none", value=bar.no_job_seconds)] if extra else []
        rows.append(row)
    return build_table(("", "GPU time", *labels.values(), *extra), rows)


def _bar(label: str, times: Sequence[GpuTime], *, whole: bool = True, runs: int = 1) -> TimeBar | None:
    seconds = {name: amount / runs for name, amount in seconds_by_class(times).items()}
    if not seconds:
        return None
    causes = seconds_by_cause(times)
    no_job = seconds.pop("no_job", 0.0)
    total = sum(seconds.values())
    seen = {name: amount for name, amount in seconds.items() if amount >= gains.NEGLIGIBLE_RATIO * total}
    parts = [
        ClassShare(
            key=name,
            label=terms.class_title(name, causes.get(name, ())),
            ratio=amount / sum(seen.values()),
            seconds=amount,
            text=display.percent(amount / total),
            hours=display.gpu_time(amount),
            causes=_causes(causes.get(name, {}), total * runs),
        )
        for name, amount in seen.items()
    ]
    return TimeBar(
        label=label,
        whole=whole,
        total=display.gpu_time(total),
        parts=tuple(parts),
        no_job_seconds=no_job,
        no_job=display.gpu_time(no_job) if no_job >= gains.NEGLIGIBLE_RATIO * total else "",
    )


def _causes(seconds: Mapping[str, float], total: float) -> str:
    seen = {cause: amount / total for cause, amount in seconds.items() if amount >= gains.NEGLIGIBLE_RATIO * total}
    if set(seen) <= {"unknown", "outside gaps"}:
        return ""
    named = {cause: terms.TIME_CAUSES.get(cause, cause.replace("_", " ")) for cause in seen}
    return ", ".join(f"{named[cause]} {display.percent(share)}" for cause, share in seen.items())
