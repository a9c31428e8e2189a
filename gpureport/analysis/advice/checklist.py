"""The checklist of the practice, answered for one run: done, worth trying, or what to record to know."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from gpureport.analysis import phrases
from gpureport.analysis.advice.run_facts import UTILISATION, RunFacts
from gpureport.analysis.detectors.memory import leaks_void_headroom
from gpureport.analysis.detectors.waiting.cpu_bound import OTHER_LOAD
from gpureport.analysis.job.events import counts_steps
from gpureport.analysis.missing_metrics import MEMORY_RESERVED, NOT_RECORDED, TOO_SHORT
from gpureport.analysis.results import DeviceStatistics, GpuTime, sum_seconds_by_class
from gpureport.analysis.rulebook import kinds_by_gpu_time_class
from gpureport.analysis.rules import RULES
from gpureport.analysis.signals import core_count, job_load, short_pauses
from gpureport.analysis.signals.core_count import CPU
from gpureport.findings import ChecklistEntry, Finding, NotJudged, Practice
from gpureport.recording import Recording
from gpureport.recording_advice import RECORD, choose_recording
from gpureport.training_names import Role, recognise_metric

WAITS = sorted(kinds_by_gpu_time_class(RULES)["waiting_for_input"])
MEMORY, PRECISION, TOGETHER = "memory", "precision", "cpu_beside_gpu"
INPUT, BATCH, THROUGHPUT = "input_pipeline", "batch", "throughput"
BALANCE, FRAMEWORK = "cpu_cores", "framework"
ITEMS = {
    MEMORY: "GPU memory watched and near full",
    PRECISION: "Reduced precision supported and used",
    TOGETHER: "CPU and GPU read together",
    INPUT: "Input pipeline not the limit",
    BALANCE: "CPU cores enough for the GPUs",
    BATCH: "Batch as large as fits",
    FRAMEWORK: "The framework's own means used",
    THROUGHPUT: "Work done measured, so that each change can be assessed",
}
"""The questions, in the order asked."""

_SPEEDS = {Role.THROUGHPUT, Role.STEP_TIME, Role.EPOCH_TIME}
_ROOMY, _BARE = 0.70, 0.1
_LEAK = "mem_leak"
_GROWS, _BESIDE, _PAUSES = "memory_keeps_growing", "beside_other_programs", "short_pauses"
_TENSOR_CORES = (7, 0)
_USED = "gpu_memory_used_bytes"
_PREALLOCATED = "memory was reserved at once, so the real need is not known"
_UNSURE = "memory stayed at one level from the first row on: it may have been reserved at once"
_MOMENT = "less than a minute was recorded: memory may have been reserved, not used"
_SHORTEST = 60.0
"""Seconds from which memory shows whether it keeps one level."""
_UNCLEAR = ("low_util_cause_unknown", job_load.BESIDE_OTHERS)
_BESIDE_OTHERS = "other programs filled the CPU and the job hardly used it"
_ALONE = "some minutes of the job without other programs"
_WITH_MORE_WORKERS = "the job with more loader workers: with fewer pauses they were waits"
_LOG_NEED = "one run without preallocation (XLA_PYTHON_CLIENT_PREALLOCATE=false, TF_FORCE_GPU_ALLOW_GROWTH=true)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What the questions are answered from."""

    recording: Recording
    facts: RunFacts
    metrics: frozenset[str]
    found: frozenset[str]
    causes: frozenset[tuple[str, str | None]]
    unjudged: tuple[NotJudged, ...]
    judged: frozenset[str]
    pauses_ratio: float


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
    missing = {entry.kind for entry in not_judged}
    run = _Run(
        recording=recording,
        facts=facts,
        metrics=frozenset(summary.metric for one in statistics for summary in one.metrics),
        found=frozenset(finding.kind for finding in findings),
        causes=frozenset((finding.kind, finding.cause) for finding in findings),
        unjudged=tuple(not_judged),
        judged=frozenset(kinds) - missing,
        pauses_ratio=short_pauses.measure_pauses_ratio(sum_seconds_by_class(gpu.seconds for gpu in gpu_time)),
    )
    return (
        *(_memory(run), _precision(run), _cpu_beside_gpu(run), _input(run), _cores(run)),
        *(_batch(run), _framework(run), _throughput(run)),
    )


def _entry(  # noqa: PLR0913, PLR0917 - what an entry holds
    item: str, state: Practice, code: str, reason: str, recording: str = "", metrics: Sequence[str] = ()
) -> ChecklistEntry:
    others = (recording,) if recording else ()
    return ChecklistEntry(
        item=item,
        state=state,
        reason=reason,
        reason_code=code,
        recording="; ".join(filter(None, [choose_recording(metrics), *others])),
        metrics=tuple(metrics),
        other_recordings=others,
    )


def _unknown_memory(run: _Run, item: str) -> ChecklistEntry | None:
    """Return why memory says nothing; None where it does."""
    if run.facts.gpu_memory is None:
        fields = (_USED, "gpu_memory_total_bytes")
        reason = "GPU memory in use, or its size, was not recorded"
        return _entry(item, Practice.CANNOT_JUDGE, NOT_RECORDED, reason, metrics=fields)
    if run.facts.preallocated is True:
        return _entry(item, Practice.CANNOT_JUDGE, MEMORY_RESERVED, _PREALLOCATED, _LOG_NEED)
    if run.facts.preallocated is None and (run.recording.run.ended - run.recording.run.started) / 1e6 < _SHORTEST:
        return _entry(item, Practice.CANNOT_JUDGE, TOO_SHORT, _MOMENT, "a minute or more of the job")
    if run.facts.preallocated is None:
        return _entry(
            item, Practice.CANNOT_JUDGE, "memory_perhaps_reserved", _UNSURE, "a log that begins before the job does"
        )
    return None


def _memory(run: _Run) -> ChecklistEntry:
    if unknown := _unknown_memory(run, MEMORY):
        return unknown
    if _LEAK in run.found:
        reason = "memory keeps growing: see what the finding on it advises"
        return _entry(MEMORY, Practice.WORTH_TRYING, _GROWS, reason)
    peak = run.facts.gpu_memory or 0.0
    filled = f"the fullest GPU reached {phrases.percent(peak)} of its memory"
    if not _roomy(run, peak):
        return _entry(MEMORY, Practice.DONE, "memory_filled", filled)
    return _entry(MEMORY, Practice.WORTH_TRYING, "memory_left", f"{filled}: there is room for a larger batch or model")


def _roomy(run: _Run, peak: float) -> bool:
    """Whether memory has room, by the rule on it where it ran; that says nothing of GPUs that hold next to none."""
    return "mem_headroom" in run.found or peak < (_BARE if "mem_headroom" in run.judged else _ROOMY)


def _precision(run: _Run) -> ChecklistEntry:
    facts = run.facts
    if facts.reduced_precision:
        return _entry(
            PRECISION, Practice.DONE, "reduced_precision", "params say that the job computes in 16 bits or fewer"
        )
    capability = facts.compute_capability
    if capability and capability < _TENSOR_CORES:
        shown = ".".join(map(str, capability))
        reason = f"nothing to do: at compute capability {shown} the GPU has no tensor cores"
        return _entry(PRECISION, Practice.DONE, "no_tensor_cores", reason)
    if "full_precision" in run.found:
        reason = "full precision was found on GPUs with tensor cores"
        return _entry(PRECISION, Practice.WORTH_TRYING, "full_precision", reason)
    if facts.reduced_precision is False and capability:
        worked = ", which worked, as they do in TF32" if "full_precision" in run.judged else ""
        reason = f"params say that the job computes in 32 bits, on GPUs with tensor cores{worked}"
        return _entry(PRECISION, Practice.WORTH_TRYING, "full_precision_stated", reason)
    if "full_precision" in run.judged and capability:
        reason = "the tensor cores worked, as they do in 16 bits and in TF32; nothing recorded tells which"
        return _entry(PRECISION, Practice.CANNOT_JUDGE, "unknown_precision", reason, "--param precision=bf16 (or fp32)")
    known = "the GPU's model" if capability is None else "the precision"
    reason = f"nothing recorded tells {known}" + (" and the precision" if known == "the GPU's model" else "")
    told = "--param precision=bf16 (or fp32), or DCGM's tensor activity (gpu_tensor_active_ratio)"
    code = "unknown_gpu_model" if capability is None else "precision_not_recorded"
    return _entry(PRECISION, Practice.CANNOT_JUDGE, code, reason, told)


def _cpu_beside_gpu(run: _Run) -> ChecklistEntry:
    absent = [name for name in (UTILISATION, CPU) if name not in run.metrics]
    if absent:
        names = " and ".join("CPU" if name == CPU else "GPU" for name in absent)
        reason = f"no use of the {names} was recorded, so the cause of a wait is not known"
        return _entry(TOGETHER, Practice.CANNOT_JUDGE, NOT_RECORDED, reason, metrics=absent)
    thin = next((entry for entry in run.unjudged if entry.kind == "cpu_bound"), None)
    if thin:
        other = "" if thin.metrics else thin.recording
        return _entry(TOGETHER, Practice.CANNOT_JUDGE, thin.code, thin.reason, other, thin.metrics)
    return _entry(TOGETHER, Practice.DONE, "recorded_together", "both were recorded side by side")


def _input(run: _Run) -> ChecklistEntry:
    waits = [kind for kind in WAITS if kind in run.found]
    if waits:
        reason = f"GPUs waited for input ({', '.join(waits)}): see what these findings advise"
        return _entry(INPUT, Practice.WORTH_TRYING, "waits_found", reason)
    if _UNCLEAR in run.causes:
        reason = f"{_BESIDE_OTHERS}, so whether GPUs waited for input is not shown"
        return _entry(INPUT, Practice.CANNOT_JUDGE, _BESIDE, reason, _ALONE)
    missing = [entry for entry in run.unjudged if entry.kind in WAITS]
    if missing or not run.judged & set(WAITS):
        kinds = ", ".join(dict.fromkeys(entry.kind for entry in missing)) or "the causes of waits"
        # kinds share what they lack: each thing to record is named once
        metrics = list(dict.fromkeys(name for entry in missing for name in entry.metrics))
        others = "; ".join(dict.fromkeys(entry.recording for entry in missing if not entry.metrics))
        reason = f"no wait was found, but {kinds} could not be assessed"
        other = others or ("" if metrics else RECORD)
        return _entry(INPUT, Practice.CANNOT_JUDGE, "waits_not_assessed", reason, other, metrics)
    if run.pauses_ratio >= short_pauses.NOTABLE:
        reason = f"no wait was found, but {_describe_pauses(run)}, which may be waits"
        return _entry(INPUT, Practice.CANNOT_JUDGE, _PAUSES, reason, _WITH_MORE_WORKERS)
    reason = f"assessed ({', '.join(sorted(run.judged & set(WAITS)))}), and no wait was found"
    return _entry(INPUT, Practice.DONE, "no_waits", reason)


def _cores(run: _Run) -> ChecklistEntry:
    """Judge the cores by what the CPU did beside GPUs that waited; how many a GPU has is a fact, and no limit."""
    together = _cpu_beside_gpu(run)
    if together.state is Practice.CANNOT_JUDGE:
        return replace(together, item=BALANCE)
    waits = "the CPU was busy while GPUs waited (cpu_bound)" if "cpu_bound" in run.found else ""
    count = core_count.count_cores(run.facts.setup, run.facts.gpus_a_machine)
    if count is None:
        reason = "; ".join(filter(None, [waits, "the number of cores was not recorded"]))
        return _entry(BALANCE, Practice.CANNOT_JUDGE, "cores_not_recorded", reason, "--param cpu_count=N")
    known = count.words
    if (workers := run.facts.setup.workers) is not None and isfinite(workers.value):
        known = f"{known} and {phrases.count_of(round(workers.value), 'loader worker')} a process"
    if waits:
        reason = f"{known}, and {waits}: {_judge_full_cores(run)}"
        return _entry(BALANCE, Practice.WORTH_TRYING, "cpu_busy_while_waiting", reason)
    if "cpu_bound_single" in run.found:
        reason = f"{known}; one thread was busy all the time while GPUs waited (cpu_bound_single): spread its work"
        return _entry(BALANCE, Practice.WORTH_TRYING, "one_core_busy_while_waiting", reason)
    if _UNCLEAR in run.causes or run.pauses_ratio >= short_pauses.NOTABLE:
        others = _UNCLEAR in run.causes or run.facts.others_fill_cpu
        why, other = (_BESIDE_OTHERS, _ALONE) if others else (_describe_pauses(run), _WITH_MORE_WORKERS)
        reason = f"{known}; {why}, so whether it lacks cores is not shown"
        return _entry(BALANCE, Practice.CANNOT_JUDGE, _BESIDE if others else _PAUSES, reason, other)
    used = phrases.percent(run.facts.cpu_used or 0.0)
    reason = f"{known}; the CPU's median use was {used}, and no wait for it was found"
    if "underutilised" in run.found:
        reason += ": GPUs worked little for another reason (underutilised)"
    return _entry(BALANCE, Practice.DONE, "no_waits", reason)


def _describe_pauses(run: _Run) -> str:
    return f"short pauses took {phrases.percent(run.pauses_ratio)} of the GPU time"


def _judge_full_cores(run: _Run) -> str:
    if ("cpu_bound", OTHER_LOAD) in run.causes:
        return "other programs held most of them"
    some_left = "workers_headroom" in run.found
    return "some are left for more loader workers" if some_left else "too few for what the loader does"


def _framework(run: _Run) -> ChecklistEntry:
    setup = run.facts.setup
    known = [one for one in (setup.compiled, setup.cuda_graphs, setup.cudnn_benchmark) if one is not None]
    used = dict.fromkeys(one.text for one in known if one.value)
    whose = f"the job runs {run.facts.framework}; " if run.facts.framework else ""
    if used:
        reason = f"{whose}params say what is used: {', '.join(used)}"
        return _entry(FRAMEWORK, Practice.DONE, "means_used", reason)
    if known:
        unused = ", ".join(dict.fromkeys(one.text for one in known))
        reason = f"{whose}params say what is not used: {unused}"
        return _entry(FRAMEWORK, Practice.WORTH_TRYING, "means_not_used", reason)
    reason = f"{whose}whether the model is compiled, or CUDA graphs or cuDNN autotuning are used, was not recorded"
    return _entry(FRAMEWORK, Practice.CANNOT_JUDGE, "means_not_recorded", reason, "--param compile=true (or false)")


def _batch(run: _Run) -> ChecklistEntry:
    if unknown := _unknown_memory(run, BATCH):
        return unknown
    if _LEAK in run.found:
        reason = "memory keeps growing, so its peak does not say what a batch needs"
        return _entry(BATCH, Practice.CANNOT_JUDGE, _GROWS, reason, leaks_void_headroom.RECORDING)
    peak = run.facts.gpu_memory or 0.0
    if not _roomy(run, peak):
        used, free = phrases.percent(peak), phrases.percent(1 - peak)
        reason = f"{used} of the memory was used at the peak; the remaining {free} is too little for a larger batch"
        return _entry(BATCH, Practice.DONE, "memory_filled", reason)
    low = run.found & {"hollow_util", "underutilised", "low_util_cause_unknown"}
    why = f", and GPUs did little of what they could ({', '.join(sorted(low))})" if low else ""
    reason = f"{phrases.percent(1 - peak)} of the memory was never used{why}"
    return _entry(BATCH, Practice.WORTH_TRYING, "memory_left", reason)


def _throughput(run: _Run) -> ChecklistEntry:
    work = run.recording.run.work
    if work is not None:
        reason = f"the work done is known ({work.amount:,.12g} {work.unit})"
        return _entry(THROUGHPUT, Practice.DONE, "work_known", reason)
    speeds = list(_speeds(run.recording))
    if speeds:
        return _entry(THROUGHPUT, Practice.DONE, "speed_logged", f"the job logged its speed ({', '.join(speeds)})")
    if counts_steps(run.recording):
        return _entry(THROUGHPUT, Practice.DONE, "steps_logged", "the job logged its steps")
    reason = "the work done is not known, so changes cannot be measured by it"
    other = "--work N:UNIT, or a throughput logged by the job"
    return _entry(THROUGHPUT, Practice.CANNOT_JUDGE, "unknown_work", reason, other)


def _speeds(recording: Recording) -> Iterator[str]:
    if not len(recording.training):
        return
    names = dict.fromkeys(recording.training.column("name").to_pylist())
    known = (recognise_metric(name) for name in names if name)
    yield from (each.name for each in known if each and each.role in _SPEEDS)
