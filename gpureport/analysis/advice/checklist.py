"""Answers the checklist of good practice for one run."""

import tomllib
from collections.abc import Collection, Iterator
from math import isfinite
from pathlib import Path

from gpureport.analysis import phrases
from gpureport.analysis.advice.choose import RunFacts
from gpureport.analysis.job.events import find_steps, list_names
from gpureport.analysis.results import NOTABLE, Analysis, measure_pauses_ratio, sum_seconds_by_class
from gpureport.analysis.rules.waits import BESIDE_OTHERS, WAIT_KINDS
from gpureport.analysis.series import CPU, MEMORY, UTILISATION
from gpureport.findings import ChecklistEntry, Practice
from gpureport.names import Role, recognise_metric
from gpureport.recording import Recording
from gpureport.recording_advice import RECORD, choose_recording

_SAID = tomllib.loads(Path(__file__).with_name("checklist.toml").read_text(encoding="utf-8"))
ITEMS: dict[str, str] = {item: said["title"] for item, said in _SAID.items()}

_LIKE = {"batch": "memory", "cpu_cores": "cpu_beside_gpu"}  # items that also use another item's answers
_WAITS = {*WAIT_KINDS}
_SPEEDS = {Role.THROUGHPUT, Role.STEP_TIME, Role.EPOCH_TIME}
_LITTLE_WORK = ("hollow_util", "low_util_cause_unknown", "underutilised")
_ROOMY, _BARE = 0.70, 0.1
_SHORTEST = 60.0  # seconds; a shorter log does not show whether memory was reserved


def answer_checklist(
    recording: Recording, analysis: Analysis, facts: RunFacts, kinds: Collection[str]
) -> Iterator[ChecklistEntry]:
    """Yield each item's answer: its first code in `checklist.toml` that applies, or its last."""
    run, causes = recording.run, {(one.kind, one.cause) for one in analysis.findings}
    found = {kind for kind, _ in causes}
    judged = {*kinds} - {one.kind for one in analysis.not_judged}
    missing = [one for one in analysis.not_judged if one.kind in _WAITS]
    codes = {(one.kind, one.code) for one in analysis.not_judged}
    seen = {summary.metric for one in analysis.statistics for summary in one.metrics}
    seen |= {"gpu_memory_total_bytes" for gpu in run.gpus if gpu.memory_total_bytes}
    thin = next((one for one in missing if one.kind == "cpu_bound"), None)
    pauses = measure_pauses_ratio(sum_seconds_by_class(gpu.seconds for gpu in analysis.gpu_time))
    used, cores, workers, precise = facts.gpu_memory, facts.cores, facts.setup.workers, facts.setup.precision
    is_unsure, waited, capability = facts.preallocated is None, "cpu_bound" in found, facts.compute_capability
    # the rule on memory ignores GPUs with almost no memory in use
    has_room = "mem_headroom" in found or (used or 0.0) < (_BARE if "mem_headroom" in judged else _ROOMY)
    means = [one for one in (facts.setup.compiled, facts.setup.cuda_graphs, facts.setup.cudnn_benchmark) if one]
    taken = [one for one in means if one.value]
    idle = [kind for kind in _LITTLE_WORK if kind in found]
    metrics = [name for name in list_names(recording) if (one := recognise_metric(name)) and one.role in _SPEEDS]
    lacking = tuple(dict.fromkeys(name for one in missing for name in one.metrics))
    others = "; ".join(dict.fromkeys(one.recording for one in missing if not one.metrics))
    holds: dict[str, object] = {
        "memory_reserved_at_once": facts.preallocated,
        "too_short": is_unsure and (run.ended - run.started) / 1e6 < _SHORTEST,
        "coarse_samples": is_unsure and ("mem_prealloc", "coarse_samples") in codes,
        "memory_perhaps_reserved": is_unsure,
        "memory_keeps_growing": "mem_leak" in found,
        "memory_left": has_room,
        "reduced_precision": precise and precise.value,
        "no_tensor_cores": capability and capability < (7, 0),
        "full_precision": "full_precision" in found,
        "unknown_gpu_model": capability is None,
        "full_precision_stated": precise,
        "unknown_precision": "full_precision" in judged,
        "not_judged": thin,
        "waits_found": found & _WAITS,
        "waits_not_assessed": missing or not judged & _WAITS,
        "cores_not_recorded": cores is None,
        "cpu_busy_while_waiting": waited,
        "one_core_busy_while_waiting": "cpu_bound_single" in found,
        "beside_other_programs": ("low_util_cause_unknown", BESIDE_OTHERS) in causes,
        "short_pauses": pauses >= NOTABLE,
        "means_used": taken,
        "means_not_used": means,
        "work_known": run.work,
        "speed_logged": metrics,
        "steps_logged": run.work is None and not metrics and find_steps(recording),
    }
    left = "other programs used most of them" if ("cpu_bound", "other programs") in causes else ""
    headroom = "cores are free for more loader workers" if "workers_headroom" in found else ""
    loaders = workers and isfinite(workers.value) and phrases.count_of(round(workers.value), "loader worker")
    words = {
        "used": phrases.percent(used or 0.0),
        "free": phrases.percent(1 - (used or 0.0)),
        "low": f", and the GPUs could do more ({', '.join(idle)})" if idle else "",
        "capability": ".".join(map(str, capability or ())),
        "model": "" if all(gpu.model for gpu in run.gpus) else "--gpu-model NAME",
        "precision": "" if precise else "--param precision=bf16 (or fp32)",
        "reason": thin.reason if thin else "",
        "recording": thin.recording if thin and not thin.metrics else "",
        "found": ", ".join(sorted(found & _WAITS)),
        "unassessed": ", ".join(dict.fromkeys(one.kind for one in missing)) or "the causes of waits",
        "recordings": others or ("" if lacking else RECORD),
        "assessed": ", ".join(sorted(judged & _WAITS)),
        "pauses": phrases.percent(pauses),
        "waits": "the CPU was busy while GPUs waited (cpu_bound); " if waited else "",
        "cores": (cores.words if cores else "") + (f" and {loaders} per process" if loaders else ""),
        "left": left or headroom or "too few for the loader",
        "cpu": phrases.percent(facts.cpu_used or 0.0),
        "other": "; low use has another cause (underutilised)" if "underutilised" in found else "",
        "job": f"the job uses {facts.framework}; " if facts.framework else "",
        "params": ", ".join(dict.fromkeys(one.text for one in taken or means)),
        "work": f"{phrases.number(run.work.amount)} {run.work.unit}" if run.work else "",
        "speeds": ", ".join(metrics),
    }
    for item in ITEMS:
        is_cpu, said = item.startswith("cpu"), _SAID.get(_LIKE.get(item, ""), {}) | _SAID[item]
        needed = (UTILISATION, CPU) if is_cpu else (MEMORY, "gpu_memory_total_bytes")
        absent = tuple(name for name in needed if name not in seen)
        holds["not_recorded"] = absent if is_cpu else used is None
        words["unknown"] = phrases.join_words(absent or needed)
        code = next((code for code in said if holds.get(code)), list(said)[-1])
        state, reason, *asked = said[code]
        asks = {
            "not_recorded": absent or needed,
            "not_judged": thin.metrics if thin else (),
            "waits_not_assessed": lacking,
        }.get(code, ())
        further = tuple(text for each in asked if (text := each.format(**words)))
        yield ChecklistEntry(
            item=item,
            state=Practice(state),
            reason=reason.format(**words),
            reason_code=thin.code if thin and code == "not_judged" else code,
            recording="; ".join(filter(None, [choose_recording(asks), *further])),
            metrics=asks,
            other_recordings=further,
        )
