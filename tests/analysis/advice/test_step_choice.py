"""Which steps a finding gets, by what the run tells."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpureport.analysis.advice import step_choice
from gpureport.analysis.advice.catalogue import STEPS
from gpureport.analysis.advice.run_facts import RunFacts
from gpureport.analysis.job.framework import Framework
from gpureport.analysis.job.job_params import read_params
from gpureport.analysis.rules import shared_advice
from gpureport.testing import Evidence, Recording, analyze, finding, recording, steps

NOTHING = RunFacts(gpus=1)
WAIT = finding("cpu_bound", (0, 100), cause="data")


def _names(facts: RunFacts, kind: str = "cpu_bound", cause: str | None = "data") -> list[str]:
    return [step.name for step in step_choice.choose_steps(finding(kind, (0, 100), cause=cause), facts)]


def test_without_knowledge_every_step_says_what_is_not_known() -> None:
    """Nothing is left out on a guess, and nothing is promised."""
    chosen = {step.name: step.unknown for step in step_choice.choose_steps(WAIT, NOTHING)}
    assert chosen["loader_workers"] == (
        "CPU cores are free (median use below 90%), or the job hardly uses the CPU",
        "host memory is not full (below 90%)",
    )
    assert chosen["profile_step"] == ()


def test_a_full_cpu_gets_no_more_workers() -> None:
    """More workers need cores; preprocessing elsewhere needs a CPU that is busy."""
    full, free = replace(NOTHING, cpu_used=0.97), replace(NOTHING, cpu_used=0.30)
    assert "loader_workers" not in _names(full)
    assert _names(full)[0] == "offline_preprocessing"
    assert "loader_workers" in _names(free)
    assert {"offline_preprocessing", "gpu_preprocessing"}.isdisjoint(_names(free))


def test_the_finding_knows_its_own_episodes_better_than_the_run() -> None:
    """A CPU that is calm over the run was full where the GPU waited."""
    measured = Evidence(metric="cpu_utilization_ratio", statistic="median", observed=0.96, unit="1")
    chosen = step_choice.choose_steps(replace(WAIT, evidence=(measured,)), replace(NOTHING, cpu_used=0.3))
    names = [step.name for step in chosen]
    assert "loader_workers" not in names
    assert "offline_preprocessing" in names


def test_a_full_host_gets_nothing_that_takes_its_memory() -> None:
    """Workers, prefetching, pinned memory and asynchronous checkpoints all do."""
    full = replace(NOTHING, cpu_used=0.5, host_memory=0.95)
    assert {"loader_workers", "prefetch", "pinned_memory"}.isdisjoint(_names(full))
    assert "asynchronous_checkpoints" not in _names(full, "idle_gap", "checkpoint")


@pytest.mark.parametrize(("capability", "offered"), [((6, 1), False), ((7, 0), True), ((9, 0), True), (None, True)])
def test_mixed_precision_needs_tensor_cores(capability: tuple[int, int] | None, *, offered: bool) -> None:
    """By compute capability; unknown GPUs get it with the question."""
    facts = replace(NOTHING, compute_capability=capability, reduced_precision=False)
    chosen = {step.name: step.unknown for step in step_choice.choose_steps(finding("full_precision", (0, 9)), facts)}
    assert ("mixed_precision" in chosen) is offered
    if offered:
        assert bool(chosen["mixed_precision"]) is (capability is None)


def test_what_is_done_is_not_advised() -> None:
    """A job in 16 bits is not told to go there."""
    facts = replace(NOTHING, compute_capability=(8, 0), reduced_precision=True)
    assert "mixed_precision" not in _names(facts, "full_precision", None)


def test_a_larger_batch_needs_memory_that_is_free_for_sure() -> None:
    """Preallocation hides the need: then it is a question, unless all that was taken leaves room."""

    def offered(**known: object) -> tuple[str, ...] | None:
        facts = replace(NOTHING, **known)  # type: ignore[arg-type]  # each caller names real fields
        chosen = {step.name: step.unknown for step in step_choice.choose_steps(finding("mem_headroom"), facts)}
        return chosen.get("larger_batch")

    assert offered(gpu_memory=0.4, preallocated=False) == ()
    assert offered(gpu_memory=0.93, preallocated=False) is None
    assert offered(gpu_memory=0.4, preallocated=None) == ()
    assert offered(gpu_memory=0.9, preallocated=None) == ("GPU memory is free (the job needs less than 85%)",)
    assert offered(gpu_memory=0.9, preallocated=True) == ("GPU memory is free (the job needs less than 85%)",)


def test_steps_that_fit_come_before_those_that_may() -> None:
    """Known first, each part in the order of the table."""
    facts = replace(NOTHING, cpu_used=0.5, host_memory=0.2)
    chosen = step_choice.choose_steps(WAIT, facts)
    asked = [bool(step.unknown) for step in chosen]
    assert asked == sorted(asked)
    assert chosen[0].name == "loader_workers"


def test_every_finding_of_an_analysis_has_steps() -> None:
    """The steps of a real analysis, from what it recorded."""
    util, cpu = steps((0, 60), (97, 300), (20, 300), (0, 30), (97, 100)), steps((20, 360), (95, 300), (20, 130))
    run = recording(util=util, cpu=cpu, memory=np.linspace(1, 30, 790), power=399, power_limit=400)
    findings = analyze(run).findings
    assert findings
    assert [one.kind for one in findings if not one.steps] == []
    (wait,) = (one for one in findings if one.kind == "cpu_bound")
    assert "loader_workers" not in {step.name for step in wait.steps}


IDLE = replace(NOTHING, cpu_used=0.15, host_memory=0.3, gpu_memory=0.4, preallocated=False, compute_capability=(8, 0))
FULL = replace(IDLE, gpu_memory=0.96)
TAKEN = [
    ("num_workers=16 cpu_count=16", "loader_workers", "cpu_bound", "data"),
    ("num_workers=8 cpus_per_task=8", "loader_workers", "io_bound", "storage"),
    ("num_workers=1", "fewer_workers", "host_memory_pressure", None),
    ("persistent_workers=True num_workers=4", "persistent_workers", "idle_gap", "epoch"),
    ("prefetch_factor=8", "prefetch", "idle_gap", "data"),
    ("prefetch=AUTOTUNE", "prefetch", "idle_gap", "data"),
    ("pin_memory=True", "pinned_memory", "transfer_bound", "copying"),
    ("non_blocking=1", "overlapped_copies", "transfer_bound", "copying"),
    ("torch_compile=true", "compile", "hollow_util", "launches"),
    ("compile_mode=reduce-overhead", "cuda_graphs", "hollow_util", "launches"),
    ("cudnn_benchmark=True", "cudnn_autotuning", "full_precision", None),
    ("pretrained=imagenet/resnet50.pth", "pretrained_weights", "no_progress", None),
    ("async_save=True", "asynchronous_checkpoints", "idle_gap", "checkpoint"),
    ("gradient_accumulation_steps=4", "gradient_accumulation", "mem_pressure", None),
]
NOT_TAKEN = [
    ("num_workers=2 cpu_count=16", "loader_workers", "underutilised", None),
    ("workers=2 cores=16", "loader_workers", "cpu_bound_single", "one thread"),
    ("num_workers=0", "loader_workers", "low_util_cause_unknown", None),
    ("persistent_workers=False num_workers=4", "persistent_workers", "idle_gap", "unknown"),
    ("prefetch_factor=1", "prefetch", "io_bound", "storage"),
    ("pin_memory=False", "pinned_memory", "transfer_bound", "copying"),
    ("non_blocking=False pin_memory=True", "overlapped_copies", "transfer_bound", "copying"),
    ("compile=False", "compile", "hollow_util", "launches"),
    ("use_cuda_graphs=0", "cuda_graphs", "hollow_util", "launches"),
    ("async_save=False", "asynchronous_checkpoints", "periodic_stall", None),
    ("per_device_train_batch_size=1", "larger_batch", "underutilised", None),
]


def _told(text: str, known: RunFacts) -> RunFacts:
    return replace(known, setup=read_params(tuple(word.split("=")) for word in text.split()))  # type: ignore[misc]  # pairs of a split at one sign


@pytest.mark.parametrize(("params", "step", "kind", "cause"), TAKEN)
def test_a_step_that_was_taken_is_not_advised(params: str, step: str, kind: str, cause: str | None) -> None:
    """Without the params it is; with them the finding has others, and its advice says on what they rest."""
    known = FULL if kind == "mem_pressure" else IDLE
    assert step in _names(known, kind, cause)
    told = _told(params, known)
    assert step not in _names(told, kind, cause)
    advice = step_choice.write_recommendation(finding(kind, (0, 100), cause=cause), told)
    assert params.split(maxsplit=1)[0] in advice
    assert STEPS[_names(told, kind, cause)[0]].title in advice


@pytest.mark.parametrize(("params", "step", "kind", "cause"), NOT_TAKEN)
def test_a_step_that_was_not_taken_comes_first(params: str, step: str, kind: str, cause: str | None) -> None:
    """As the params say; the advice begins with it."""
    told = _told(params, IDLE)
    assert _names(told, kind, cause)[0] == step
    advice = step_choice.write_recommendation(finding(kind, (0, 100), cause=cause), told)
    assert f"try in this order: 1. {STEPS[step].title}; 2. " in advice


@pytest.mark.parametrize(("reduced", "place"), [(True, None), (False, 0)])
def test_precision_that_is_known(*, reduced: bool, place: int | None) -> None:
    """Full precision is the first thing to change where memory is full; 16 bits are not advised again."""
    names = _names(replace(FULL, reduced_precision=reduced), "mem_pressure", None)
    assert (names.index("mixed_precision") if "mixed_precision" in names else None) == place


def test_workers_count_for_each_process() -> None:
    """Four GPUs with four workers each have no core of sixteen to spare, one GPU with four has."""
    told = _told("num_workers=4 cpu_count=16", IDLE)
    assert _names(told, "underutilised", None)[0] == "loader_workers"
    assert "loader_workers" not in _names(replace(told, gpus_a_machine=4), "underutilised", None)


def test_without_params_the_advice_is_that_of_the_rule() -> None:
    """What nobody said changes nothing."""
    assert step_choice.write_recommendation(WAIT, IDLE) == WAIT.recommendation


def test_as_many_workers_as_cores_leave_preprocessing_elsewhere() -> None:
    """A CPU that is full beside them gets its work taken away, and no finding says that there is room for more."""
    util, cpu = steps((0, 60), (97, 300), (20, 300), (0, 30), (97, 100)), steps((20, 360), (85, 300), (20, 130))
    host = {"host_memory": np.full(790, 30.0)}
    run = recording(util=util, cpu=cpu, host=host)
    assert {one.kind for one in analyze(run).findings} >= {"cpu_bound", "workers_headroom"}
    findings = {one.kind: one for one in analyze(_with(run, num_workers="16", cpu_count="16")).findings}
    assert "workers_headroom" not in findings
    shared = analyze(_with(recording(util=[util] * 4, cpu=cpu, host=host), num_workers="4", cpu_count="16"))
    assert "workers_headroom" not in {one.kind for one in shared.findings}
    advice = findings["cpu_bound"].recommendation
    assert advice.startswith(
        "With num_workers=16 and cpu_count=16, try in this order: 1. Preprocess when the data are made; "
        "2. Decode and augment on the GPU; "
    )


def _with(run: Recording, **tags: str) -> Recording:
    return replace(run, run=replace(run.run, tags=tuple(tags.items())))


@pytest.mark.parametrize(
    ("model", "link", "offered"),
    [
        ("NVIDIA A100-SXM4-80GB", {"link_generation": 4, "link_width": 16}, None),
        ("a GPU nobody knows", {"link_generation": 4, "link_width": 16}, None),
        ("NVIDIA A100-SXM4-80GB", {"link_generation": 3, "link_width": 16}, "asked"),
        ("NVIDIA A100-SXM4-80GB", {"link_generation": 4, "link_width": 8, "link_width_max": 16}, "known"),
        ("NVIDIA A100-SXM4-80GB", {"link_generation": 4, "link_width": 8, "link_width_max": 8}, None),
        ("NVIDIA A100-SXM4-80GB", {"link_generation_max": 4, "link_width_max": 16}, None),
    ],
)
def test_only_a_link_below_its_best_is_reseated(model: str, link: dict[str, Any], offered: str | None) -> None:
    """A link that carries what card and slot allow gets other advice on copies that fill it."""
    run = recording(
        util=steps((97, 100), (30, 300)), received=steps((2, 100), (26, 300)) / 16 * 12, model=model, **link
    )
    (wait,) = (one for one in analyze(run).findings if one.kind == "transfer_bound")
    said = ["asked" if one.unknown else "known" for one in wait.steps if one.name == "reseat_card"]
    assert said == ([] if offered is None else [offered])


def test_a_lower_power_limit_is_below_what_the_gpu_draws() -> None:
    """Of 400 W a hot GPU draws 240: 85 % of its default would change nothing, so the power is told with the heat."""
    hot: dict[str, Any] = {"temperature": 92, "sw_thermal_slowdown": np.ones(300), "power": 240, "power_limit": 400}
    (heat,) = (
        one for one in analyze(recording(util=np.full(300, 97.0), **hot)).findings if one.kind == "thermal_throttle"
    )
    assert "below what the GPU draws while it is slowed" in heat.recommendation
    assert [one.observed for one in heat.evidence if one.metric == "gpu_power_watts"] == [240]
    step = STEPS["lower_power_limit"].do
    assert "below what the GPU draws" in step
    assert "default" not in step


@pytest.mark.parametrize(("power", "raised"), [(298, True), (150, False)])
def test_a_limit_that_is_not_felt_is_not_to_be_raised(power: float, *, raised: bool) -> None:
    """Where the GPU hardly comes near a lowered limit, raising it gains nothing."""
    run = recording(util=np.full(300, 97.0), power=power, power_limit=300, default_limit=400)
    (limited,) = (one for one in analyze(run).findings if one.kind == "power_limited")
    assert bool(limited.steps) == ("raise it with" in limited.recommendation) == raised


def test_few_workers_come_first_where_the_cpu_was_not_recorded() -> None:
    """Two on sixteen cores are the first thing to change, and whether the cores are free is asked."""
    first, *_ = step_choice.choose_steps(
        finding("low_util_cause_unknown", (0, 9)), _told("num_workers=2 cpu_count=16", NOTHING)
    )
    assert (first.name, bool(first.unknown)) == ("loader_workers", True)


@pytest.mark.parametrize(
    ("framework", "pipeline", "pins"),
    [
        (Framework.PYTORCH, "pytorch_input", True),
        (Framework.TENSORFLOW, "tensorflow_input", False),
        (Framework.JAX, "jax_input", False),
        (None, "input_pipeline", True),
    ],
)
@pytest.mark.parametrize("kind", ["cpu_bound", "cpu_bound_single", "io_bound", "workers_headroom"])
def test_only_the_input_pipeline_of_the_framework(
    kind: str, framework: Framework | None, pipeline: str, *, pins: bool
) -> None:
    """One of the four, and settings of PyTorch only where another framework is not named."""
    names = _names(replace(IDLE, framework=framework), kind)
    assert [name for name in names if name in shared_advice.INPUT_PIPELINES] == [pipeline]
    assert ("pinned_memory" in names) is (pins and kind == "cpu_bound")


@pytest.mark.parametrize(
    ("params", "unknown"),
    [
        ("lr=1", ["the model convolves inputs of few shapes", "the model is not compiled"]),
        ("compile=False", ["the model convolves inputs of few shapes"]),
        ("compile=True", None),
    ],
)
def test_cudnn_is_tuned_for_a_model_that_is_not_compiled(params: str, unknown: list[str] | None) -> None:
    """Whether shapes are fixed no log tells, so the step always asks."""
    chosen = {one.name: one.unknown for one in step_choice.choose_steps(finding("full_precision"), _told(params, IDLE))}
    assert chosen.get("cudnn_autotuning") == (None if unknown is None else tuple(unknown))


def test_training_from_scratch_may_have_a_reason() -> None:
    """Trained weights come last, also where params say that none are used, and nothing is promised of them."""
    for params, unknown in (("lr=1", ("the run trains from scratch",)), ("pretrained=False", ())):
        last = step_choice.choose_steps(finding("no_progress"), _told(params, IDLE))[-1]
        assert (last.name, last.unknown) == ("pretrained_weights", unknown)
    assert "not known" in STEPS["pretrained_weights"].risk


def test_without_a_known_cause_what_shows_it_comes_first() -> None:
    """A gap that nothing explains is no sign of a checkpoint."""
    assert _names(NOTHING, "idle_gap", "unknown")[:2] == ["record_more", "profile_step"]
