"""Groups findings by kind and cause, and phrases them using `kinds.toml`."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from math import fsum
from typing import Any, NamedTuple

from gpureport.analysis.account.gpu_time import OUTSIDE
from gpureport.analysis.job.jobs import PROCESS_MEMORY
from gpureport.analysis.phrases import fill_template
from gpureport.analysis.rulebook import ACTIONS, FIGURES, KINDS
from gpureport.analysis.series.intervals import Spans, to_spans, total_seconds
from gpureport.findings import Confidence, Evidence, Finding, Severity
from gpureport.names import group_pairs
from gpureport.recording_advice import RECORD
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.head.loss_sentence import describe_computing, measure_mid_job
from gpureport.report.wording import display, terms
from gpureport.report.wording.display import format_gpu_time_range, format_range

SEVERITIES, CONFIDENCES = list(Severity), list(Confidence)
Key = tuple[str, str | None]  # Kind and cause.
_OTHERS = "GPUs"  # Name for GPUs that differ from run to run.
_NOTABLE = 0.1  # share of a run from which an info finding can be the headline
_NOTED = {"no_progress", "log_gap", "startup_idle", "tail_idle"}
LOST = "{lost} lost, {lost_share} of {run}"
UNKNOWN_GAIN = "Gain not known"
_WORKERS = "loader_workers"
_LITTLE, _MOST = 0.5, 0.8
"""Share below which the GPU does little work; share of a run below which durations are shown."""
_LEAST_FALL = 0.005
_format_lengths = partial(format_range, show=display.duration)
_FORM = re.compile(r"<([^<>]*)>")
_CONVERT: Mapping[str, Callable[[float], float]] = {
    "": float,
    "complement": lambda x: 1 - x,
    "per minute": lambda x: 60 * x,
    "in minutes": lambda x: 60 * round(x / 60) or x,
}


class Part(NamedTuple):
    """A finding with its run, and the kind and cause of its root finding."""

    position: int
    run: ReportRun
    finding: Finding
    root: Key | None


class Found:
    """Findings of one kind and cause in a report on one or `several` runs. `finding` is the costliest.

    `roots` contains None if a finding has no root. `lost_by_run` maps the position of a run to GPU-seconds.
    """

    def __init__(self, parts: Sequence[Part], *, several: bool = False) -> None:
        self.parts, self.several = tuple(parts), several
        own = self.findings = tuple(part.finding for part in parts)
        self.finding = max(own, key=lambda each: (each.lost_gpu_seconds or 0.0, SEVERITIES.index(each.severity)))
        self.key: Key = self.finding.kind, self.finding.cause
        self.severity = max((each.severity for each in own), key=SEVERITIES.index)
        self.confidence = max((each.confidence for each in own), key=CONFIDENCES.index)
        self.runs = {part.position: part.run for part in parts}
        self.roots = {part.root for part in parts}
        self.devices = list(dict.fromkeys(device for each in own for device in each.devices))
        self.fingerprints = tuple(dict.fromkeys(each.fingerprint for each in own))
        self.intervals = tuple(span for each in own for span in each.intervals)
        self.lost_by_run = _add_up((part.position, part.finding.lost_gpu_seconds) for part in parts)
        self.lost = max(self.lost_by_run.values(), default=None)
        self.has_one_gpu = all(len(run.run.gpus) == 1 for run in self.runs.values())
        self.title = terms.kind_title(display.shorten(display.clean(self.finding.kind), 80), self.finding.cause)
        self.cause = display.shorten(display.clean(self.finding.cause or "").replace("_", " "), 80)

    @cached_property
    def groups(self) -> tuple["Found", ...]:
        held = group_pairs(((part.position, part.root), part) for part in self.parts)
        return tuple(Found(parts, several=self.several) for parts in held.values()) if len(held) > 1 else (self,)

    @cached_property
    def worst(self) -> "Found":
        return max(self.groups, key=lambda group: (group.lost or 0.0, SEVERITIES.index(group.severity)))

    @property
    def run(self) -> ReportRun:
        return self.worst.parts[0].run

    @property
    def position(self) -> int:
        return self.worst.parts[0].position

    @cached_property
    def shares(self) -> list[float]:
        bases = ((lost, gpu_time.measure_base([self.runs[at].analysis])) for at, lost in self.lost_by_run.items())
        return [lost / base for lost, base in bases if base]

    @property
    def share(self) -> float:
        return max(self.shares, default=0.0)

    @cached_property
    def cost_by_run(self) -> dict[int, float]:
        priced = ((part, cost) for part in self.parts if (cost := part.run.analysis.cost) is not None)
        return _add_up((part.position, cost.cost_of(part.finding)) for part, cost in priced)

    @cached_property
    def spans(self) -> Spans:
        return to_spans(span for each in self.worst.findings for span in self.run.job_intervals(each))

    @property
    def seconds(self) -> float:
        return total_seconds(self.spans)

    @property
    def is_plural(self) -> bool:
        return self.gpus == _OTHERS or len(self.worst.devices or self.run.run.gpus) > 1

    @cached_property
    def gpus(self) -> str:
        """`GPU 2`, `all 4 GPUs`, `the GPU` or, if the GPUs differ between runs, `GPUs`."""
        if self.has_one_gpu and (len(self.runs) > 1 or not self.devices):
            return "the GPU"
        held = group_pairs((part.position, device) for part in self.parts for device in part.finding.devices or [""])
        names = {self.runs[place].devices([each for each in devices if each]) for place, devices in held.items()}
        return names.pop() if len(names) == 1 else _OTHERS

    def list_evidence(self, metric: str, *statistics: str) -> Iterator[Evidence]:
        """Yield each finding's first evidence whose statistic is, or starts with, a name."""
        for finding in self.findings:
            known = [each for each in finding.evidence if metric in {each.metric, "*"}]
            named = [each for wanted in statistics for each in known if each.statistic == wanted.rstrip(".")]
            begun = [each for wanted in statistics for each in known if f"{each.statistic}.".startswith(wanted)]
            yield from (named or begun)[:1]


def _add_up(amounts: Iterable[tuple[int, float | None]]) -> dict[int, float]:
    held = group_pairs((position, amount) for position, amount in amounts if amount is not None)
    return {position: fsum(each) for position, each in held.items()}


def gather(runs: Sequence[ReportRun]) -> tuple[Found, ...]:
    """Return findings grouped by kind and cause, sorted by severity and worst loss, roots first."""
    named = [{each.fingerprint: (each.kind, each.cause) for each in run.analysis.findings} for run in runs]
    held = group_pairs(
        ((each.kind, each.cause), Part(position, run, each, named[position].get(each.root or "")))
        for position, run in enumerate(runs)
        for each in run.analysis.findings
    )
    found = [Found(parts, several=len(runs) > 1) for parts in held.values()]
    return tuple(sorted(found, key=lambda each: (*rank(each), None not in each.roots)))


def rank(found: Found) -> tuple[int, float]:
    return -SEVERITIES.index(found.severity), -(found.lost or 0.0)


def find_worst(runs: Sequence[ReportRun]) -> Found | None:
    """Return the worst findings. Info findings count only if notable."""
    every = []
    for group in (group for found in gather(runs) for group in found.groups if None in group.roots):
        whole = group.run.seconds
        share = group.share if group.shares else group.seconds / whole if whole else 0.0
        is_noted = group.finding.kind in _NOTED and share >= _NOTABLE
        every += [group] if is_noted or group.severity is not Severity.INFO else []
    return min(every, key=rank, default=None)


def find_words(found: Found, name: str, default: Any = "") -> Any:
    kind = KINDS.get(found.finding.kind)
    return _choose_case(kind.report.get(name, default), found.finding.cause) if kind else default


def _choose_case(said: Any, case: str | None) -> Any:
    return said.get(case or "", said.get("", "")) if isinstance(said, dict) else said


def describe_finding(found: Found, *, now: bool = False) -> str:
    return display.raise_first(fill_words(found, find_words(found, "tells"), now=now))


def write_headline(found: Found) -> str:
    said = display.clean_sentence(found.finding.summary).partition(". ")[0].rstrip(".")
    where = f", {found.run.devices(found.devices)}" if found.devices else ""
    return describe_finding(found, now=True) or f"{said or display.shorten(f'{found.title}{where}', 80)}."


def fill_words(found: Found, template: str, *, now: bool = False, **places: str) -> str:
    """Return the filled template, or "" if a figure is unknown."""

    def fill(name: str, noun: str) -> str:
        if noun not in {"", "?"}:
            count = round(fsum(_list_values(found, name)[0]))
            return display.plural(count, noun) if count else ""
        return places.get(name) or _describe(found, name, now=now)

    def choose_form(form: re.Match[str]) -> str:
        forms = form[1].split("/")
        chosen = forms[:2] if now else forms[2:] or forms
        return chosen[found.is_plural and len(chosen) > 1]

    return fill_template(_FORM.sub(choose_form, template), fill, fill, in_full=True)


def _list_values(found: Found, name: str) -> tuple[list[float], str]:
    metric, _, said = FIGURES.get(name, name).partition(", ")
    statistics, _, convert = said.partition(" | ")
    entries = list(found.list_evidence(metric, *statistics.split(" / ")))
    values = [_CONVERT[convert](entry.observed) for entry in entries]
    return values, entries[0].unit.removesuffix("/s" if convert == "per minute" else "") if entries else ""


def _describe(found: Found, name: str, *, now: bool) -> str:
    if name in _WORKED_OUT:
        return _WORKED_OUT[name](found)
    if name in {"why", "busy"}:
        return fill_words(
            found,
            find_words(found, "why") if name == "why" else "[{mean} busy|little used]",
            now=now,
        )
    values, unit = _list_values(found, name)
    if name == "length" and (not values or (now and not _count_jobs(found))):
        values, unit = [found.seconds], "s"
    if not values or (name == "fall" and min(values) < _LEAST_FALL):
        return ""
    return format_range(values, display.rough_duration if now and unit == "s" else partial(display.quantity, unit=unit))


def _describe_gaps(found: Found) -> str:
    shares = [
        fsum(part.seconds for part in time.parts if part.name == "idle" and part.cause != OUTSIDE)
        / gpu_time.measure_own_seconds(time)
        for time in found.run.analysis.gpu_time
        if time.device in found.worst.devices and time.job_seconds
    ]
    return format_range(shares, display.percent) if shares and all(shares) else ""


def _describe_own_share(found: Found) -> str:
    # relative to the time of these GPUs, as in their bars
    times = [time for time in found.run.analysis.gpu_time if time.device in found.worst.devices]
    own = fsum(map(gpu_time.measure_own_seconds, times))
    return display.percent(found.worst.lost / own) if own and found.worst.lost else ""


def _describe_whole_loss(found: Found) -> str:
    run, spans = found.run.run, [each.intervals for each in found.worst.findings]
    # GPUs are sampled at slightly different times
    first, last = run.started + 5e5 * (run.interval or 0), run.ended
    never = all(each and each[0].start <= first and each[-1].end >= last for each in spans)
    return display.rough_duration(found.seconds) if never and len(found.spans) == 1 else ""


def _describe_computing(found: Found) -> str:
    analyses = [found.run.analysis]
    is_little = len(found.runs) == 1 and found.has_one_gpu and measure_mid_job(analyses) < _LITTLE
    return describe_computing(analyses, mid_job=True) if is_little else ""


def _name_stopped(found: Found) -> str:
    gaps = [each for each in found.run.analysis.findings if each.kind == "idle_gap"]
    caused = [device for each in gaps if each.root in found.worst.fingerprints for device in each.devices]
    devices = found.worst.devices if found.finding.kind == "idle_gap" else caused
    return found.run.devices(devices) if devices else ""


def _count_jobs(found: Found) -> str:
    # a finding without devices applies to all GPUs of a job
    held = Counter(device for each in found.worst.findings for device in each.devices or ("",))
    jobs = max(held.values(), default=1)
    return str(jobs) if jobs > 1 else ""


def leave_out_occupied_gpus(found: Found) -> Found:
    """Leave out unused GPUs whose memory another process uses, unless none would remain."""
    free = [part for part in found.parts if not _measure_occupied(part.finding)]
    return Found(free, several=found.several) if free else found


def _measure_occupied(finding: Finding) -> float:
    said = finding.evidence if finding.kind == "unused_gpu" else ()
    used = (each.observed for each in said if (each.metric, each.statistic) == ("gpu_memory_used_bytes", "max"))
    return next((one for one in used if one >= PROCESS_MEMORY.value), 0.0)


def _name_workers(found: Found) -> str:
    steps = [step for each in (found.finding, *found.findings) for step in each.steps if step.name == _WORKERS]
    return next((step.suggestion for step in steps if step.suggestion), "Add one at a time." if steps else "")


def _number_gpus(found: Found, *, is_named: bool = True) -> str:
    gpus = {gpu for run in found.runs.values() for gpu in run.run.gpus if (gpu.id in found.devices) is is_named}
    return ",".join(map(str, sorted({gpu.index for gpu in gpus if gpu.index is not None}))) or "0"


_WORKED_OUT: Mapping[str, Callable[[Found], str]] = {
    "run": lambda found: gpu_time.name_base(found.runs.values(), "a run" if found.several else ""),
    "gpus": lambda found: found.gpus,
    "some_gpu": lambda found: found.gpus if found.devices else "a GPU",
    "memory": lambda found: "GPU memory" if found.has_one_gpu else f"the memory of {found.gpus}",
    "stopped": _name_stopped,
    "lost": lambda found: (
        (_format_lengths if found.has_one_gpu else format_gpu_time_range)(found.lost_by_run.values())
        if found.lost
        else ""
    ),
    "lost_share": lambda found: format_range(found.shares, display.percent) if found.share else "",
    "gap_share": _describe_gaps,
    "own_share": _describe_own_share,
    "gaps": lambda found: (
        display.plural(len(found.intervals), "gap") + (f" on {found.gpus}" if found.is_plural else "")
    ),
    "longest": lambda found: display.duration(max((each.seconds for each in found.intervals), default=0.0)),
    "before_end": lambda found: (
        display.rough_duration((found.run.run.ended - int(found.spans[0, 0])) / 1e6)
        # only for GPUs that did not come back
        if len(found.spans) and found.spans[-1, 1] >= found.run.run.ended
        else ""
    ),
    "never": _describe_whole_loss,
    "silence": lambda found: display.rough_duration(found.seconds) if found.intervals else "",
    "computing": _describe_computing,
    "part": lambda found: display.rough_duration(found.seconds) if found.seconds < _MOST * found.run.seconds else "",
    "ruled_out": lambda found: (
        "ruled out"
        if all(any(found.list_evidence(name, "")) for name in ("cpu_iowait_ratio", "cpu_busiest_core_ratio"))
        and found.finding.confidence is not Confidence.LOW
        else ""
    ),
    "best": lambda found: next(
        (display.shorten_middle(display.clean(each.metric), 28) for each in found.list_evidence("*", "best.")),
        "the training metric",
    ),
    "missing_share": lambda found: display.percent(found.seconds / found.run.seconds) if len(found.runs) == 1 else "",
    "error": lambda found: next(
        (display.clean(e.text.strip("[]")) for e in found.run.run.quality.log_events if e.device in found.devices), ""
    ),
    "goes_on": lambda found: next((each.metric for each in found.list_evidence("*", "goes on for.")), "the host log"),
    "jobs": _count_jobs,
    "held": lambda found: (
        format_range(held, display.memory) if all(held := [_measure_occupied(each) for each in found.findings]) else ""
    ),
    "workers": _name_workers,
    "index": _number_gpus,
    "kept": lambda found: _number_gpus(found, is_named=False),
    "record": lambda _: RECORD,
}


class Advice(NamedTuple):
    title: str
    how: str
    gain: str = ""
    command: str = ""


def find_advice(kind: str, cause: str | None, steps: Sequence[str] = ()) -> Sequence[str]:
    said = KINDS[kind].report.get("do", ()) if kind in KINDS else ()
    words: Sequence[str] = _choose_case(said, cause or ("workers" if _WORKERS in steps[:1] else None))
    return ACTIONS[words[1:]] if isinstance(words, str) else words


def advise(found: Found, others: Iterable[Found] = ()) -> Advice | None:
    found = leave_out_occupied_gpus(found)
    said = find_advice(*found.key, [step.name for each in found.findings for step in each.steps])
    return fill_advice(ACTIONS["room"] if has_alternative(found, others) else said, found) if said else None


def fill_advice(said: Sequence[str], found: Found, **places: str) -> Advice:
    title, *others = [fill_words(found, text, now=False, **places) for text in said]
    return Advice(title, *(UNKNOWN_GAIN if text == "?" else text for text in others))


def has_alternative(found: Found, others: Iterable[Found]) -> bool:
    """Return whether a run has both free memory and an oversized GPU."""
    other = {"mem_headroom": "oversized_gpu", "oversized_gpu": "mem_headroom"}.get(found.finding.kind)
    return any(each.finding.kind == other and each.runs.keys() & found.runs for each in others)
