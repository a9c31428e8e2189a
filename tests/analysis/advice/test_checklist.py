"""The checklist of the practice: done, worth trying, or what to record."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport.analysis.advice.checklist import ITEMS
from gpureport.answers import ChecklistEntry, Outcome, Practice
from gpureport.comparison.steps.throughput import throughput
from gpureport.testing import Floats, Recording, Work, analyze, recording, steps, with_host, with_training

DONE, TRY, CANNOT = Practice.DONE, Practice.WORTH_TRYING, Practice.CANNOT_JUDGE
BUSY = steps((97, 300))
CALM = steps((20, 300))


def _of(run: Recording) -> dict[str, ChecklistEntry]:
    return {entry.item: entry for entry in analyze(run).checklist}


def _said(run: Recording, **labels: object) -> Recording:
    return replace(run, run=replace(run.run, **labels))  # type: ignore[arg-type]  # each caller names real fields


@pytest.mark.parametrize(
    "run",
    [
        recording(util=BUSY, cpu=CALM, memory=np.linspace(1, 60, 300)),
        recording(temperature=steps((60, 60))),
        recording(util=[50.0]),
    ],
)
def test_every_question_is_answered(run: Recording) -> None:
    """All of them, in order, whatever was recorded; who cannot judge says what to record."""
    entries = analyze(run).checklist
    assert [entry.item for entry in entries] == list(ITEMS)
    assert all(entry.reason for entry in entries)
    assert [entry.item for entry in entries if bool(entry.recording) is not (entry.state is CANNOT)] == []


@pytest.mark.parametrize(("peak", "state"), [(40, TRY), (50, TRY), (60, DONE), (78, DONE)])
def test_memory_and_batch(peak: float, state: Practice) -> None:
    """Below 70% of 80 GiB there is room; a second step is no preallocation."""
    entries = _of(recording(util=BUSY, memory=steps((peak / 2, 40), (peak, 260))))
    assert (entries["memory"].state, entries["batch"].state) == (state, state)


def test_next_to_no_memory_is_not_near_full() -> None:
    """A small model fills no GPU: there is room for a larger batch, which the finding on it says as well."""
    run = recording(util=BUSY, memory=steps((0, 10), (0.3, 90), (0.46, 200)))
    assert "mem_headroom" in {found.kind for found in analyze(run).findings}
    entries = _of(run)
    assert (entries["memory"].state, entries["batch"].state) == (TRY, TRY)


def test_memory_that_grows_is_not_to_be_filled() -> None:
    """Beside a leak nobody is told to raise the batch, neither by a finding nor by the list."""
    analysis = analyze(recording(util=BUSY, memory=np.linspace(1, 40, 300)))
    assert [one.kind for one in analysis.findings if one.kind in {"mem_leak", "mem_headroom"}] == ["mem_leak"]
    assert "keeps growing" in next(one.reason for one in analysis.not_judged if one.kind == "mem_headroom")
    entries = {entry.item: entry for entry in analysis.checklist}
    assert (entries["memory"].state, entries["batch"].state) == (TRY, CANNOT)


def test_preallocated_memory_says_nothing() -> None:
    """Neither full nor free: turn it off once to see."""
    entries = _of(recording(util=BUSY, memory=steps((1, 30), (70, 270))))
    assert entries["memory"].state is CANNOT
    assert "preallocation" in entries["memory"].recording
    assert entries["batch"].state is CANNOT


def test_memory_that_was_not_recorded() -> None:
    """The command that records it."""
    entry = _of(recording(util=BUSY))["memory"]
    assert entry.state is CANNOT
    assert "gpu_memory_used_bytes" in entry.metrics


@pytest.mark.parametrize(
    ("params", "model", "state"),
    [
        ((("precision", "bf16"),), "NVIDIA A100-SXM4-80GB", DONE),
        ((("precision", "32"),), "NVIDIA A100-SXM4-80GB", TRY),
        ((), "NVIDIA A100-SXM4-80GB", CANNOT),
        ((("precision", "32"),), "a GPU nobody knows", CANNOT),
    ],
)
def test_precision(params: tuple[tuple[str, str], ...], model: str, state: Practice) -> None:
    """By params and compute capability; tensor activity is for the rule on full precision."""
    entry = _of(_said(recording(util=BUSY, model=model), params=params))["precision"]
    assert entry.state is state


@pytest.mark.parametrize(("params", "state"), [((), CANNOT), ((("precision", "32"),), TRY)])
def test_tensor_cores_at_work_do_not_tell_16_bits_from_tf32(
    params: tuple[tuple[str, str], ...], state: Practice
) -> None:
    """They rule full precision out; whether 16 bits are left to try is known from params alone."""
    analysis = analyze(_said(recording(util=BUSY, tensor_active=30), params=params))
    (answer,) = (each for each in analysis.answers if each.kind == "full_precision")
    (entry,) = (each for each in analysis.checklist if each.item == "precision")
    assert (answer.outcome, entry.state) == (Outcome.JUDGED, state)
    assert "TF32" in entry.reason


def test_precision_of_a_gpu_that_never_worked_is_not_known() -> None:
    """Nor where nothing tells it."""
    for run in (recording(util=BUSY), recording(util=steps((0, 300)))):
        assert _of(run)["precision"].state is CANNOT


def test_cpu_beside_gpu() -> None:
    """Both or what is missing."""
    assert _of(recording(util=BUSY, cpu=CALM))["cpu_beside_gpu"].state is DONE
    alone = _of(recording(util=BUSY))["cpu_beside_gpu"]
    assert alone.state is CANNOT
    assert "CPU" in alone.reason
    brief = _of(recording(util=BUSY, cpu=steps((20, 60))))["cpu_beside_gpu"]
    assert (brief.state, "covers only" in brief.reason) == (CANNOT, True)


def test_the_input_pipeline() -> None:
    """Found, judged, or not to be judged without the CPU; never done by silence."""
    starved = _of(recording(util=steps((97, 100), (30, 300)), cpu=steps((20, 100), (95, 300))))["input_pipeline"]
    assert starved.state is TRY
    assert "cpu_bound" in starved.reason
    unknown = _of(recording(temperature=CALM))["input_pipeline"]
    assert unknown.state is CANNOT
    assert unknown.recording.count("gpureport record") == 1, "what several kinds lack is named once"


@pytest.mark.parametrize(
    ("job", "cores", "pipeline"),
    [(0.02, "whether it lacks cores is not shown", CANNOT), (1.0, "other programs held most of them", TRY)],
)
def test_a_cpu_that_other_programs_fill(job: float, cores: str, pipeline: Practice) -> None:
    """Cores are not too few for a loader that hardly used them."""
    run = with_host(
        recording(util=steps((97, 100), (30, 300))),
        np.arange(400.0),
        cpu_utilization_ratio=steps((20, 100), (95, 300)) / 100,
        cpu_logical_cores=16.0,
        job_cpu_cores=job,
    )
    entries = _of(run)
    assert entries["input_pipeline"].state is pipeline
    assert cores in entries["cpu_cores"].reason
    assert "too few" not in entries["cpu_cores"].reason


PAUSED = 80 + 2 * (np.arange(300.0) % 3 - 1)


@pytest.mark.parametrize(
    ("util", "job", "pipeline", "cores", "words"),
    [
        (PAUSED, 0.01, CANNOT, CANNOT, "other programs filled the CPU and the job hardly used it, so whether"),
        (PAUSED, 15.0, CANNOT, CANNOT, "short pauses took 20% of the GPU time, so whether it lacks cores"),
        (BUSY, 0.01, DONE, DONE, "no wait for it was found"),
    ],
)
def test_pauses_that_nothing_explains_leave_waits_open(
    util: Floats, job: float, pipeline: Practice, cores: Practice, words: str
) -> None:
    """They may be waits for input too short for a finding; a full CPU beside them does not show that it is enough."""
    seconds = np.arange(300.0)
    host = {"cpu_iowait_ratio": 0.0, "cpu_busiest_core_ratio": 0.96, "host_memory_used_ratio": 0.2}
    host |= {"cpu_utilization_ratio": 0.95, "cpu_logical_cores": 16.0, "job_cpu_cores": job}
    run = recording(util=util, received=0.0, sent=0.0, link_generation=4.0, link_width=16.0)
    entries = _of(with_host(run, seconds, **host))
    assert entries["input_pipeline"].state is pipeline
    assert ("short pauses took 20% of the GPU time" in entries["input_pipeline"].reason) == (pipeline is CANNOT)
    assert entries["cpu_cores"].state is cores
    assert words in entries["cpu_cores"].reason


def test_throughput() -> None:
    """Work said, speed logged, or neither."""
    run = recording(util=BUSY)
    assert _of(_said(run, work=Work(amount=1000, unit="steps")))["throughput"].state is DONE
    logged = with_training(run, [(10, "train/loss", 2.0), (20, "samples_per_second", 120.0)])
    assert "samples_per_second" in _of(logged)["throughput"].reason
    silent = _of(with_training(run, [(10, "train/loss", 2.0)]))["throughput"]
    assert (silent.state, "--work" in silent.recording) == (CANNOT, True)


def test_steps_count_the_work_from_as_many_points_as_comparisons_take() -> None:
    """Two tell no rate, nor do three that do not rise."""
    run, losses = (
        recording(util=BUSY),
        [(10.0, "train/loss", 2.0), (20.0, "train/loss", 1.5), (30.0, "train/loss", 1.0)],
    )
    for points, expected in ((losses, DONE), (losses[:2], CANNOT), ([(10.0, *point[1:]) for point in losses], CANNOT)):
        logged = with_training(run, points)
        entry = _of(logged)["throughput"]
        assert (entry.state, throughput(logged.training) is not None) == (expected, expected is DONE)
        assert (entry.reason == "the job logged its steps") == (expected is DONE)


def test_a_moment_does_not_tell_that_memory_kept_its_level() -> None:
    """Of one sample the memory questions ask for a longer log; ten minutes answer them."""
    for rows, reason in ((1, "less than a minute was recorded"), (600, "the fullest gpu reached 75%")):
        found = _of(recording(util=np.full(rows, 50.0), memory=np.full(rows, 60.0)))
        assert next(iter(found.values())).reason.lower().startswith(reason)


WAITING = {"util": steps((97, 60), (30, 300)), "cpu": steps((40, 60), (96, 300))}
LOW = {"util": np.full(360, 30.0), "cpu": np.full(360, 5.0)}
FED = {"util": np.full(360, 97.0), "cpu": np.full(360, 40.0)}


@pytest.mark.parametrize(
    ("series", "host", "params", "state", "words"),
    [
        (WAITING, {"cores": np.full(360, 8.0)}, {}, TRY, "the machine has 8 cores for 1 GPU, and the CPU was busy"),
        (WAITING, {}, {"cpu_count": "8"}, TRY, "too few for what the loader does"),
        (WAITING, {"host_memory": np.full(360, 20.0)}, {"cpu_count": "8"}, TRY, "too few"),
        (WAITING, {}, {"cpus_per_task": "4", "num_workers": "2"}, TRY, "each process has 4 cores and 2 loader workers"),
        (LOW, {}, {"cpu_count": "8"}, DONE, "GPUs worked little for another reason (underutilised)"),
        (WAITING, {}, {}, CANNOT, "(cpu_bound); the number of cores was not recorded"),
        (FED, {"cores": np.full(360, 8.0)}, {}, DONE, "the CPU's median use was 40%, and no wait for it was found"),
        (FED, {}, {}, CANNOT, "the number of cores was not recorded"),
        ({"util": FED["util"]}, {}, {"cpu_count": "8"}, CANNOT, "no use of the CPU was recorded"),
    ],
)
def test_cores_are_judged_by_what_they_did(
    series: dict[str, Floats], host: dict[str, Floats], params: dict[str, str], state: Practice, words: str
) -> None:
    """How many a GPU has is told; whether they are enough is what the CPU did beside GPUs that waited."""
    entry = _of(_said(recording(**series, host=host), params=tuple(params.items())))["cpu_cores"]  # type: ignore[arg-type]  # series are arrays
    assert entry.state is state
    assert words in entry.reason
    assert (state is CANNOT) == bool(entry.recording)


def test_cores_that_are_left_are_named() -> None:
    """A busy CPU with room for workers is not too small."""
    host = {"host_memory": np.full(360, 20.0), "cores": np.full(360, 8.0)}
    run = recording(util=WAITING["util"], cpu=steps((40, 60), (82, 300)), host=host)
    assert _of(run)["cpu_cores"].reason.endswith("some are left for more loader workers")


@pytest.mark.parametrize(
    ("params", "state", "words"),
    [
        ({"compile": "True"}, DONE, "params say what is used: compile=True"),
        ({"framework": "jax", "xla": "1"}, DONE, "the job runs JAX; params say what is used: xla=1"),
        ({"cudnn_benchmark": "0"}, TRY, "params say what is not used: cudnn_benchmark=0"),
        ({"framework": "torch"}, CANNOT, "the job runs PyTorch; whether the model is compiled"),
    ],
)
def test_the_means_of_the_framework(params: dict[str, str], state: Practice, words: str) -> None:
    """As params say it."""
    entry = _of(_said(recording(util=BUSY), params=tuple(params.items())))["framework"]
    assert (entry.state, entry.reason.startswith(words)) == (state, True)
