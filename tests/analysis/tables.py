"""Tables of recordings by name, and what is found in each, as `expected/` holds it."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpureport.testing import (
    START,
    AdvisedStep,
    Analysis,
    DeviceStatistics,
    Finding,
    Floats,
    Interval,
    NotJudged,
    Recording,
    analyze,
    recording,
    steps,
    with_params,
)

Table = Mapping[str, Any]
Hold = Callable[..., None]
"""Holds what is said of subjects, which are kinds or of `_SUBJECTS`, in each recording or analysis of a table.

Before those of the table come the recordings of the block `## test: subjects` in the text file beside the test.
"""


rec: Callable[..., Recording] = recording


def read_recording(row: str) -> Recording:
    """Return the recording that a row tells: arguments of `recording`, `host.` before those of its host, and `params.`.

    `97x60,0x20` are 60 samples of 97 and 20 of 0; `(97x2,0)x30` are thirty times these three; `|` stands between GPUs.
    """
    told: dict[str, dict[str, Any]] = {"": {}, "host": {}, "params": {}}
    for word, _, text in (word.partition("=") for word in shlex.split(row)):
        group, _, name = word.rpartition(".")
        told[group][name] = (text or None) if name == "model" or group == "params" else _read_values(text)
    return with_params(rec(**told[""], host=told["host"]), **told["params"])


def _read_values(text: str) -> float | Floats | list[Floats]:
    whole = re.sub(r"\(([^)]*)\)x(\d+)", lambda part: ",".join([part[1]] * int(part[2])), text)
    if not re.search("[x,|]", whole):
        return float(whole)
    gpus = ([part.partition("x") for part in gpu.split(",")] for gpu in whole.split("|"))
    found = [steps(*((float(value), int(count or 1)) for value, _, count in gpu)) for gpu in gpus]
    return found if len(found) > 1 else found[0]


def describe(subjects: str, run: Recording | Analysis) -> Iterator[str]:
    """Yield what is said of subjects in a recording, a line each."""
    analysis = run if isinstance(run, Analysis) else analyze(run)
    for subject in subjects.split(", "):
        lines = _SUBJECTS[subject](analysis) if subject in _SUBJECTS else _describe_kind(analysis, subject)
        yield from (f"  {line}" for line in lines)


def _describe_kind(analysis: Analysis, kind: str) -> Iterator[str]:
    kinds = {one.fingerprint: one.kind for one in analysis.findings}
    for one in (one for one in analysis.findings if one.kind == kind):
        yield from _describe_finding(one)
        if one.root is not None:
            yield f"  follows from {kinds[one.root]}"
    for entry in (entry for entry in analysis.not_judged if entry.kind == kind):
        yield _describe_missing(entry)


def _describe_finding(one: Finding) -> Iterator[str]:
    lost = "" if one.lost_gpu_seconds is None else f", lost {one.lost_gpu_seconds:.4g}"
    period = "" if one.period_seconds is None else f", every {one.period_seconds:.4g} s"
    named = f"{one.cause or 'no cause'}, {one.severity}, {one.confidence}, {one.samples} samples"
    yield f"{_devices(one.devices)} {_spans(one.intervals)}{lost}{period}: {named}, {len(one.ruled_out)} out"
    for each in one.evidence:
        limit = "" if each.threshold is None else f" {each.relation} {each.threshold.value:.4g}"
        yield f"  {each.metric}, {each.statistic}: {each.observed:.4g}{limit}"
    # the advice begins with the params that leave steps out
    stated = f"{one.recommendation.partition(':')[0]}, " * one.recommendation.startswith("With ")
    yield f"  {stated}then {', '.join(map(_describe_step, one.steps)) or 'nothing'}"


def _describe_step(step: AdvisedStep) -> str:
    """Return the name of a step, how much must be known to say whether it fits, and the numbers of its suggestion."""
    numbers = re.findall(r"\d+(?:\.\d+)?", step.suggestion)
    return step.name + "?" * len(step.unknown) + f" ({' '.join(numbers)})" * bool(numbers)


def _describe_missing(entry: NotJudged) -> str:
    asked = ", ".join(entry.metrics) if entry.recording else "nothing to record"
    code = entry.code if entry.reason else "no reason"
    return f"not assessed{(entry.device and f' {entry.device}') or ''}: {code}; {asked}".removesuffix("; ")


def _devices(devices: Sequence[str]) -> str:
    return ",".join(devices) or "job"


def _spans(parts: Sequence[Interval]) -> str:
    edges = [[round((edge - START) / 1e6, 1) for edge in (part.start, part.end)] for part in parts]
    texts = [f"{start:.10g} to {end:.10g} s" for start, end in edges]
    more = f" and {len(texts) - 4} more, {sum(part.seconds for part in parts):.4g} s in all" if len(texts) > 4 else ""
    return ", ".join(texts[:4]) + more


def _describe_time(analysis: Analysis) -> Iterator[str]:
    for time in analysis.gpu_time:
        yield f"{time.device}: {', '.join(f'{name} {seconds:.4g}' for name, seconds in time.seconds if seconds > 1e-3)}"
        yield from (f"  {part.name} by {part.cause}: {part.seconds:.4g}" for part in time.parts)


def _describe_jobs(analysis: Analysis) -> Iterator[str]:
    for job in analysis.jobs:
        yield f"job {_spans([job.interval])}, window {_spans([job.window])}"
    yield from (f"{phase.kind} {_spans([phase.interval])}" for phase in analysis.phases)


def _describe_stages(analysis: Analysis) -> Iterator[str]:
    for stage in analysis.stages:
        yield stage.stage
        yield from (f"  {line}" for one in stage.statistics for line in _describe_device(one))


def _describe_device(one: DeviceStatistics) -> Iterator[str]:
    names = (
        *("observed_seconds", "idle_seconds", "energy_joules", "energy_seconds", "energy_bridged_seconds"),
        *("memory_peak_bytes", "memory_headroom_ratio"),
    )
    known = {name: getattr(one, name) for name in names}
    yield f"{one.device}: {', '.join(f'{name} {value:.4g}' for name, value in known.items() if value is not None)}"
    if (read := one.energy_counter) is not None:
        counts = f"{read.restarts} restarts, {read.impossible} impossible"
        yield f"  counted {read.total:.4g} J, {read.in_gaps:.4g} in gaps, {counts}"
    if one.power_doubt:
        yield "  power in doubt"
    for each in one.metrics:
        known = {name: getattr(each, name) for name in ("mean", "sample_mean", "min", "p5", "p50", "p95", "max")}
        known |= {f"below {limit:g}": share for limit, share in each.below}
        values = ", ".join(f"{name} {value:.4g}" for name, value in known.items())
        yield f"  {each.metric}, {each.samples} of {each.effective_samples}: {values}"


def _describe_cost(analysis: Analysis) -> Iterator[str]:
    if (cost := analysis.cost) is not None:
        amounts = {"total": cost.total, "idle": cost.idle, "carbon": cost.carbon_grams}
        known = ", ".join(f"{name} {amount:.4g}" for name, amount in amounts.items() if amount is not None)
        yield f"{cost.currency} of {cost.date}: {known}; {cost.carbon_source}, {'' if cost.counted else 'not '}counted"
        for one in analysis.findings:
            yield f"  {one.kind}: {cost.cost_of(one)}"


def _describe_ledger(analysis: Analysis) -> Iterator[str]:
    for each in analysis.throttle_ledger:
        counted = each.counted and f"{each.counted.total:.4g} s, {each.counted.in_gaps:.4g} in gaps"
        clocks = (each.clock_hertz, each.reference_hertz, each.lost_ratio)
        named = ", ".join("None" if value is None else f"{value:.4g}" for value in (each.busy_seconds, *clocks))
        yield f"{each.device} {each.reason} {each.effect}: {named}; counted {counted}"


_SUBJECTS: dict[str, Callable[[Analysis], Iterable[str]]] = {
    "answers": lambda analysis: (
        f"{each.kind} of {each.group}: {each.outcome} {each.reason_code}".rstrip() for each in analysis.answers
    ),
    "caveats": lambda analysis: sorted(analysis.limit_codes),
    "checklist": lambda analysis: (
        f"{each.item}: {each.state}, {each.reason and each.reason_code}{', to record' * bool(each.recording)}"
        for each in analysis.checklist
    ),
    "GPU time": _describe_time,
    "cost": _describe_cost,
    "figures": lambda analysis: (line for one in analysis.statistics for line in _describe_device(one)),
    "stages": _describe_stages,
    "ledger": _describe_ledger,
    "jobs": _describe_jobs,
    "missing": lambda analysis: (f"{each.kind} {_describe_missing(each)}" for each in analysis.not_judged),
    "kinds": lambda analysis: (f"{one.kind} of {_devices(one.devices)}" for one in analysis.findings),
    "summaries": lambda analysis: (one.summary for one in analysis.findings),
}
