"""The checklist of the practice, answered for one run."""

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from gpureport.analysis import phrases
from gpureport.analysis.advice.choose import RunFacts
from gpureport.analysis.job.events import find_steps, list_names
from gpureport.analysis.names import CPU, UTILISATION
from gpureport.analysis.results import NOTABLE, Analysis, measure_pauses_ratio, sum_seconds_by_class
from gpureport.analysis.rules.waits import BESIDE_OTHERS, WAIT_KINDS
from gpureport.findings import ChecklistEntry, NotJudged, Practice
from gpureport.names import Role, recognise_metric
from gpureport.recording import Recording
from gpureport.recording_advice import RECORD, choose_recording

_SAID = tomllib.loads(Path(__file__).with_name("checklist.toml").read_text(encoding="utf-8"))
ITEMS: dict[str, str] = {item: said["title"] for item, said in _SAID.items()}

_WAITS = sorted(WAIT_KINDS)
_SPEEDS = {Role.THROUGHPUT, Role.STEP_TIME, Role.EPOCH_TIME}
_ROOMY, _BARE = 0.70, 0.1
_SHORTEST = 60.0  # seconds from which memory shows whether it keeps one level
_UNCLEAR = ("low_util_cause_unknown", BESIDE_OTHERS)


class _Run(NamedTuple):
    recording: Recording
    facts: RunFacts
    metrics: frozenset[str]
    causes: frozenset[tuple[str, str | None]]
    found: frozenset[str]
    unjudged: Sequence[NotJudged]
    judged: frozenset[str]
    pauses: float


def answer_checklist(
    recording: Recording, analysis: Analysis, facts: RunFacts, kinds: Collection[str]
) -> tuple[ChecklistEntry, ...]:
    metrics = frozenset(summary.metric for one in analysis.statistics for summary in one.metrics)
    causes, unjudged = frozenset((one.kind, one.cause) for one in analysis.findings), analysis.not_judged
    found, judged = frozenset(kind for kind, _ in causes), frozenset(kinds) - {entry.kind for entry in unjudged}
    pauses = measure_pauses_ratio(sum_seconds_by_class(gpu.seconds for gpu in analysis.gpu_time))
    run = _Run(recording, facts, metrics, causes, found, unjudged, judged, pauses)
    together = _read_together(run)
    return (
        _judge_memory(run, "memory"),
        _judge_precision(run),
        together,
        _judge_input(run),
        replace(together, item="cpu_cores") if together.state is Practice.CANNOT_JUDGE else _judge_cores(run),
        _judge_memory(run, "batch"),
        _judge_framework(run),
        _judge_throughput(run),
    )


def _say(item: str, code: str, metrics: Sequence[str] = (), **words: str) -> ChecklistEntry:
    state, reason, *asked = _SAID[item][code]
    others = tuple(text for each in asked if (text := each.format(**words)))
    return ChecklistEntry(
        item=item,
        state=Practice(state),
        reason=reason.format(**words),
        reason_code=words.get("own_code", code),
        recording="; ".join(filter(None, [choose_recording(metrics), *others])),
        metrics=tuple(metrics),
        other_recordings=others,
    )


def _judge_memory(run: _Run, item: str) -> ChecklistEntry:
    used, preallocated = run.facts.gpu_memory, run.facts.preallocated
    if used is None:
        doubt = _say("memory", "not_recorded", ("gpu_memory_used_bytes", "gpu_memory_total_bytes"))
        return replace(doubt, item=item)
    if preallocated is not False:
        is_short = (run.recording.run.ended - run.recording.run.started) / 1e6 < _SHORTEST
        is_coarse = any((entry.kind, entry.code) == ("mem_prealloc", "coarse_samples") for entry in run.unjudged)
        unsure = "too_short" if is_short else "coarse_samples" if is_coarse else "memory_perhaps_reserved"
        return replace(_say("memory", "memory_reserved_at_once" if preallocated else unsure), item=item)
    low = ", ".join(sorted(run.found & {"hollow_util", "underutilised", "low_util_cause_unknown"}))
    # the rule on memory says nothing of GPUs that hold next to none
    has_room = "mem_headroom" in run.found or used < (_BARE if "mem_headroom" in run.judged else _ROOMY)
    code = "memory_keeps_growing" if "mem_leak" in run.found else "memory_left" if has_room else "memory_filled"
    low = f", and GPUs did little of what they could ({low})" if low else ""
    return _say(item, code, used=phrases.percent(used), free=phrases.percent(1 - used), low=low)


def _judge_precision(run: _Run) -> ChecklistEntry:
    stated, capability = run.facts.reduced_precision, run.facts.compute_capability
    codes = {
        "reduced_precision": stated,
        "no_tensor_cores": capability and capability < (7, 0),
        "full_precision": "full_precision" in run.found,
        "unknown_gpu_model": capability is None,
        "full_precision_stated": stated is False,
        "unknown_precision": "full_precision" in run.judged,
        "precision_not_recorded": True,
    }
    code = next(code for code, holds in codes.items() if holds)
    return _say("precision", code, capability=".".join(map(str, capability or ())))


def _read_together(run: _Run) -> ChecklistEntry:
    absent = {name: what for name, what in ((UTILISATION, "GPU"), (CPU, "CPU")) if name not in run.metrics}
    if absent:
        return _say("cpu_beside_gpu", "not_recorded", tuple(absent), unknown=" and ".join(absent.values()))
    for thin in run.unjudged:
        if thin.kind == "cpu_bound":
            words = {"own_code": thin.code, "reason": thin.reason, "recording": "" if thin.metrics else thin.recording}
            return _say("cpu_beside_gpu", "not_judged", thin.metrics, **words)
    return _say("cpu_beside_gpu", "recorded_together")


def _judge_input(run: _Run) -> ChecklistEntry:
    if waits := [kind for kind in _WAITS if kind in run.found]:
        return _say("input_pipeline", "waits_found", waits=", ".join(waits))
    if _UNCLEAR in run.causes:
        return _say("input_pipeline", "beside_other_programs")
    missing = [entry for entry in run.unjudged if entry.kind in _WAITS]
    if missing or not run.judged & set(_WAITS):
        kinds = ", ".join(dict.fromkeys(entry.kind for entry in missing)) or "the causes of waits"
        # kinds share what they lack: each thing to record is named once
        metrics = list(dict.fromkeys(name for entry in missing for name in entry.metrics))
        others = "; ".join(dict.fromkeys(entry.recording for entry in missing if not entry.metrics))
        other = others or ("" if metrics else RECORD)
        return _say("input_pipeline", "waits_not_assessed", metrics, kinds=kinds, recording=other)
    code = "short_pauses" if run.pauses >= NOTABLE else "no_waits"
    kinds = ", ".join(sorted(run.judged & set(_WAITS)))
    return _say("input_pipeline", code, pauses=phrases.percent(run.pauses), kinds=kinds)


def _judge_cores(run: _Run) -> ChecklistEntry:
    count, workers, waited = run.facts.cores, run.facts.setup.workers, "cpu_bound" in run.found
    if count is None:
        waits = "the CPU was busy while GPUs waited (cpu_bound); " if waited else ""
        return _say("cpu_cores", "cores_not_recorded", waits=waits)
    has_workers = workers is not None and isfinite(workers.value)
    own = f" and {phrases.count_of(round(workers.value), 'loader worker')} a process" if workers and has_workers else ""
    left = "too few for what the loader does"
    if ("cpu_bound", "other programs") in run.causes:
        left = "other programs held most of them"
    elif "workers_headroom" in run.found:
        left = "some are left for more loader workers"
    codes = {
        "cpu_busy_while_waiting": waited,
        "one_core_busy_while_waiting": "cpu_bound_single" in run.found,
        "beside_other_programs": _UNCLEAR in run.causes,
        "short_pauses": run.pauses >= NOTABLE,
        "no_waits": True,
    }
    code = next(code for code, holds in codes.items() if holds)
    other = ": GPUs worked little for another reason (underutilised)" if "underutilised" in run.found else ""
    words = {"used": phrases.percent(run.facts.cpu_used or 0.0), "pauses": phrases.percent(run.pauses)}
    return _say("cpu_cores", code, cores=f"{count.words}{own}", left=left, other=other, **words)


def _judge_framework(run: _Run) -> ChecklistEntry:
    setup, whose = run.facts.setup, run.facts.framework
    known = [one for one in (setup.compiled, setup.cuda_graphs, setup.cudnn_benchmark) if one is not None]
    used = [one for one in known if one.value]
    code = "means_used" if used else "means_not_used" if known else "means_not_recorded"
    params = ", ".join(dict.fromkeys(one.text for one in used or known))
    return _say("framework", code, job=f"the job runs {whose}; " if whose else "", params=params)


def _judge_throughput(run: _Run) -> ChecklistEntry:
    metrics = map(recognise_metric, list_names(run.recording))
    if work := run.recording.run.work:
        return _say("throughput", "work_known", work=f"{work.amount:,.12g} {work.unit}")
    if speeds := [metric.name for metric in metrics if metric and metric.role in _SPEEDS]:
        return _say("throughput", "speed_logged", speeds=", ".join(speeds))
    return _say("throughput", "steps_logged" if find_steps(run.recording) else "unknown_work")
