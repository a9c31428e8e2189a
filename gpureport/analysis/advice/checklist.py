"""The checklist of the practice, answered for one run: done, worth trying, or what to record to know."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from gpureport.analysis import phrases
from gpureport.analysis.advice.facts import UTILISATION, RunFacts
from gpureport.analysis.job.training_signs import counts_steps
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.missing_metrics import MEMORY_RESERVED, NOT_RECORDED, TOO_SHORT
from gpureport.analysis.results import DeviceStatistics, GpuTime, sum_seconds_by_class
from gpureport.analysis.signals import job_load, short_pauses
from gpureport.analysis.signals.core_count import CPU
from gpureport.findings import ChecklistEntry, Finding, NotJudged, Practice
from gpureport.recording import Recording
from gpureport.recording_advice import RECORD, choose_recording
from gpureport.training_names import Role, recognise_metric

WAITS = sorted(name for name, kind in KINDS.items() if kind.gpu_time_class == "waiting_for_input")
ITEMS = {
    "memory": "GPU memory watched and near full",
    "precision": "Reduced precision supported and used",
    "cpu_beside_gpu": "CPU and GPU read together",
    "input_pipeline": "Input pipeline not the limit",
    "cpu_cores": "CPU cores enough for the GPUs",
    "batch": "Batch as large as fits",
    "framework": "The framework's own means used",
    "throughput": "Work done measured, so that each change can be assessed",
}
"""The questions, in the order asked."""

_DONE, _TRY, _CANNOT = Practice.DONE, Practice.WORTH_TRYING, Practice.CANNOT_JUDGE
_SPEEDS = {Role.THROUGHPUT, Role.STEP_TIME, Role.EPOCH_TIME}
_ROOMY, _BARE = 0.70, 0.1
_SHORTEST = 60.0
"""Seconds from which memory shows whether it keeps one level."""
_UNCLEAR = ("low_util_cause_unknown", job_load.BESIDE_OTHERS)
_LOG_NEED = "one run without preallocation (XLA_PYTHON_CLIENT_PREALLOCATE=false, TF_FORCE_GPU_ALLOW_GROWTH=true)"


@dataclass(frozen=True, slots=True)
class _Reply:
    """What a question is answered with: the state, the code and the words of the reason, and what to record."""

    state: Practice
    code: str
    reason: str
    recording: str = ""
    metrics: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What the questions are answered from."""

    recording: Recording
    facts: RunFacts
    metrics: frozenset[str]
    found: frozenset[str]
    causes: frozenset[tuple[str, str | None]]
    unjudged: Sequence[NotJudged]
    judged: frozenset[str]
    pauses: float


def answer_checklist(  # noqa: PLR0913, PLR0917 - what the questions are answered from
    recording: Recording,
    statistics: Sequence[DeviceStatistics],
    facts: RunFacts,
    findings: Sequence[Finding],
    not_judged: Sequence[NotJudged],
    kinds: Collection[str],
    gpu_time: Sequence[GpuTime],
) -> tuple[ChecklistEntry, ...]:
    """Return one entry a question, always all of them."""
    run = _Run(
        recording=recording,
        facts=facts,
        metrics=frozenset(summary.metric for one in statistics for summary in one.metrics),
        found=frozenset(finding.kind for finding in findings),
        causes=frozenset((finding.kind, finding.cause) for finding in findings),
        unjudged=not_judged,
        judged=frozenset(kinds) - {entry.kind for entry in not_judged},
        pauses=short_pauses.measure_pauses_ratio(sum_seconds_by_class(gpu.seconds for gpu in gpu_time)),
    )
    together, unknown = _read_together(run), _doubt_memory(run)
    replies = {
        "memory": unknown or _judge_memory(run),
        "precision": _judge_precision(run),
        "cpu_beside_gpu": together,
        "input_pipeline": _judge_input(run),
        "cpu_cores": together if together.state is _CANNOT else _judge_cores(run),
        "batch": unknown or _judge_batch(run),
        "framework": _judge_framework(run),
        "throughput": _judge_throughput(run),
    }
    return tuple(
        ChecklistEntry(
            item=item,
            state=reply.state,
            reason=reply.reason,
            reason_code=reply.code,
            recording="; ".join(filter(None, [choose_recording(reply.metrics), reply.recording])),
            metrics=tuple(reply.metrics),
            other_recordings=(reply.recording,) if reply.recording else (),
        )
        for item, reply in replies.items()
    )


def _doubt_memory(run: _Run) -> _Reply | None:
    """Return why memory says nothing; None where it does."""
    if run.facts.gpu_memory is None:
        fields = ("gpu_memory_used_bytes", "gpu_memory_total_bytes")
        return _Reply(_CANNOT, NOT_RECORDED, "GPU memory in use, or its size, was not recorded", metrics=fields)
    if run.facts.preallocated:
        reason = "memory was reserved at once, so the real need is not known"
        return _Reply(_CANNOT, MEMORY_RESERVED, reason, _LOG_NEED)
    if run.facts.preallocated is None and (run.recording.run.ended - run.recording.run.started) / 1e6 < _SHORTEST:
        reason = "less than a minute was recorded: memory may have been reserved, not used"
        return _Reply(_CANNOT, TOO_SHORT, reason, "a minute or more of the job")
    if run.facts.preallocated is None:
        reason = "memory stayed at one level from the first row on: it may have been reserved at once"
        return _Reply(_CANNOT, "memory_perhaps_reserved", reason, "a log that begins before the job does")
    return None


def _has_room(run: _Run) -> bool:
    """Whether memory has room, by the rule on it where it ran; that says nothing of GPUs that hold next to none."""
    limit = _BARE if "mem_headroom" in run.judged else _ROOMY
    return "mem_headroom" in run.found or (run.facts.gpu_memory or 0.0) < limit


def _judge_memory(run: _Run) -> _Reply:
    if "mem_leak" in run.found:
        return _Reply(_TRY, "memory_keeps_growing", "memory keeps growing: see what the finding on it advises")
    filled = f"the fullest GPU reached {phrases.percent(run.facts.gpu_memory or 0.0)} of its memory"
    if not _has_room(run):
        return _Reply(_DONE, "memory_filled", filled)
    return _Reply(_TRY, "memory_left", f"{filled}: there is room for a larger batch or model")


def _judge_batch(run: _Run) -> _Reply:
    if "mem_leak" in run.found:
        reason = "memory keeps growing, so its peak does not say what a batch needs"
        return _Reply(_CANNOT, "memory_keeps_growing", reason, "a run of the job once its memory no longer grows")
    used = run.facts.gpu_memory or 0.0
    free = phrases.percent(1 - used)
    if not _has_room(run):
        reason = f"{phrases.percent(used)} of the memory was used at the peak; the remaining {free} is too little"
        return _Reply(_DONE, "memory_filled", f"{reason} for a larger batch")
    low = run.found & {"hollow_util", "underutilised", "low_util_cause_unknown"}
    why = f", and GPUs did little of what they could ({', '.join(sorted(low))})" if low else ""
    return _Reply(_TRY, "memory_left", f"{free} of the memory was never used{why}")


def _judge_precision(run: _Run) -> _Reply:
    facts, is_judged = run.facts, "full_precision" in run.judged
    capability = facts.compute_capability
    if facts.reduced_precision:
        return _Reply(_DONE, "reduced_precision", "params say that the job computes in 16 bits or fewer")
    if capability and capability < (7, 0):
        shown = ".".join(map(str, capability))
        reason = f"nothing to do: at compute capability {shown} the GPU has no tensor cores"
        return _Reply(_DONE, "no_tensor_cores", reason)
    if "full_precision" in run.found:
        return _Reply(_TRY, "full_precision", "full precision was found on GPUs with tensor cores")
    if facts.reduced_precision is False and capability:
        worked = ", which worked, as they do in TF32" if is_judged else ""
        reason = f"params say that the job computes in 32 bits, on GPUs with tensor cores{worked}"
        return _Reply(_TRY, "full_precision_stated", reason)
    if is_judged and capability:
        reason = "the tensor cores worked, as they do in 16 bits and in TF32; nothing recorded tells which"
        return _Reply(_CANNOT, "unknown_precision", reason, "--param precision=bf16 (or fp32)")
    code, what = "precision_not_recorded", "the precision"
    if capability is None:
        code, what = "unknown_gpu_model", "the GPU's model and the precision"
    told = "--param precision=bf16 (or fp32), or DCGM's tensor activity (gpu_tensor_active_ratio)"
    return _Reply(_CANNOT, code, f"nothing recorded tells {what}", told)


def _read_together(run: _Run) -> _Reply:
    absent = [name for name in (UTILISATION, CPU) if name not in run.metrics]
    if absent:
        names = " and ".join("CPU" if name == CPU else "GPU" for name in absent)
        reason = f"no use of the {names} was recorded, so the cause of a wait is not known"
        return _Reply(_CANNOT, NOT_RECORDED, reason, metrics=absent)
    for thin in run.unjudged:
        if thin.kind == "cpu_bound":
            return _Reply(_CANNOT, thin.code, thin.reason, "" if thin.metrics else thin.recording, thin.metrics)
    return _Reply(_DONE, "recorded_together", "both were recorded side by side")


def _judge_input(run: _Run) -> _Reply:
    waits = [kind for kind in WAITS if kind in run.found]
    if waits:
        reason = f"GPUs waited for input ({', '.join(waits)}): see what these findings advise"
        return _Reply(_TRY, "waits_found", reason)
    if _UNCLEAR in run.causes:
        return _doubt_waits(run, "", "whether GPUs waited for input", others=True)
    missing = [entry for entry in run.unjudged if entry.kind in WAITS]
    if missing or not run.judged & set(WAITS):
        kinds = ", ".join(dict.fromkeys(entry.kind for entry in missing)) or "the causes of waits"
        # kinds share what they lack: each thing to record is named once
        metrics = list(dict.fromkeys(name for entry in missing for name in entry.metrics))
        others = "; ".join(dict.fromkeys(entry.recording for entry in missing if not entry.metrics))
        reason = f"no wait was found, but {kinds} could not be assessed"
        return _Reply(_CANNOT, "waits_not_assessed", reason, others or ("" if metrics else RECORD), metrics)
    if run.pauses >= short_pauses.NOTABLE:
        return _doubt_waits(run, "no wait was found; ", "whether they are waits", others=False)
    return _Reply(_DONE, "no_waits", f"assessed ({', '.join(sorted(run.judged & set(WAITS)))}), and no wait was found")


def _doubt_waits(run: _Run, known: str, what: str, *, others: bool) -> _Reply:
    """Return that a wait may hide behind other programs, or in short pauses."""
    if others:
        why, alone = "other programs filled the CPU and the job hardly used it", "some minutes of the job without them"
        return _Reply(_CANNOT, "beside_other_programs", f"{known}{why}, so {what} is not shown", alone)
    why = f"short pauses took {phrases.percent(run.pauses)} of the GPU time"
    more = "the job with more loader workers: with fewer pauses they were waits"
    return _Reply(_CANNOT, "short_pauses", f"{known}{why}, so {what} is not shown", more)


def _judge_cores(run: _Run) -> _Reply:
    """Judge the cores by what the CPU did beside GPUs that waited; how many a GPU has is a fact, and no limit."""
    waits = "the CPU was busy while GPUs waited (cpu_bound)" if "cpu_bound" in run.found else ""
    count, workers = run.facts.cores, run.facts.setup.workers
    if count is None:
        reason = "; ".join(filter(None, [waits, "the number of cores was not recorded"]))
        return _Reply(_CANNOT, "cores_not_recorded", reason, "--param cpu_count=N")
    known = count.words
    if workers is not None and isfinite(workers.value):
        known = f"{known} and {phrases.count_of(round(workers.value), 'loader worker')} a process"
    if waits:
        left = "some are left for more loader workers" if "workers_headroom" in run.found else ""
        held = "other programs held most of them" if ("cpu_bound", "other programs") in run.causes else left
        reason = f"{known}, and {waits}: {held or 'too few for what the loader does'}"
        return _Reply(_TRY, "cpu_busy_while_waiting", reason)
    if "cpu_bound_single" in run.found:
        reason = f"{known}; one thread was busy all the time while GPUs waited (cpu_bound_single): spread its work"
        return _Reply(_TRY, "one_core_busy_while_waiting", reason)
    if _UNCLEAR in run.causes or run.pauses >= short_pauses.NOTABLE:
        others = _UNCLEAR in run.causes or run.facts.others_fill_cpu
        return _doubt_waits(run, f"{known}; ", "whether it lacks cores", others=others)
    used = phrases.percent(run.facts.cpu_used or 0.0)
    other = ": GPUs worked little for another reason (underutilised)" if "underutilised" in run.found else ""
    return _Reply(_DONE, "no_waits", f"{known}; the CPU's median use was {used}, and no wait for it was found{other}")


def _judge_framework(run: _Run) -> _Reply:
    setup = run.facts.setup
    known = [one for one in (setup.compiled, setup.cuda_graphs, setup.cudnn_benchmark) if one is not None]
    used = dict.fromkeys(one.text for one in known if one.value)
    whose = f"the job runs {run.facts.framework}; " if run.facts.framework else ""
    if used:
        return _Reply(_DONE, "means_used", f"{whose}params say what is used: {', '.join(used)}")
    if known:
        unused = ", ".join(dict.fromkeys(one.text for one in known))
        return _Reply(_TRY, "means_not_used", f"{whose}params say what is not used: {unused}")
    reason = f"{whose}whether the model is compiled, or CUDA graphs or cuDNN autotuning are used, was not recorded"
    return _Reply(_CANNOT, "means_not_recorded", reason, "--param compile=true (or false)")


def _judge_throughput(run: _Run) -> _Reply:
    work, speeds = run.recording.run.work, list(_list_speeds(run.recording))
    if work is not None:
        return _Reply(_DONE, "work_known", f"the work done is known ({work.amount:,.12g} {work.unit})")
    if speeds:
        return _Reply(_DONE, "speed_logged", f"the job logged its speed ({', '.join(speeds)})")
    if counts_steps(run.recording):
        return _Reply(_DONE, "steps_logged", "the job logged its steps")
    reason = "the work done is not known, so changes cannot be measured by it"
    return _Reply(_CANNOT, "unknown_work", reason, "--work N:UNIT, or a throughput logged by the job")


def _list_speeds(recording: Recording) -> Iterator[str]:
    names = dict.fromkeys(recording.training.column("name").to_pylist()) if len(recording.training) else {}
    known = (recognise_metric(name) for name in names if name)
    yield from (each.name for each in known if each and each.role in _SPEEDS)
