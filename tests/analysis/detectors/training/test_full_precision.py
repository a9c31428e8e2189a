"""Mixed precision that is supported and not in use."""

import numpy as np
import pytest

from gpureport.analysis.job import precision_params
from gpureport.testing import Confidence, Severity, analyze, found, recording, steps, unjudged, with_params

_BUSY = steps((97, 300))


def test_idle_tensor_cores_are_found() -> None:
    """Over the busy time of the whole run."""
    run = recording(util=steps((97, 250), (0, 50)), tensor_active=steps((0.2, 250), (0, 50)))
    (finding,) = found(analyze(run), "full_precision")
    assert (finding.severity, finding.confidence, finding.intervals) == (Severity.INFO, Confidence.HIGH, ())
    assert "The tensor cores of GPU 0 worked for 0.2% of the busy time; 16-bit precision may be" in finding.summary


def test_params_that_say_32_bits_are_found() -> None:
    """Where tensor activity was not counted."""
    (finding,) = found(analyze(with_params(recording(util=_BUSY), precision="32-true")), "full_precision")
    assert finding.confidence is Confidence.MEDIUM
    assert "The run says precision=32-true; 16-bit precision may be faster." in finding.summary


def test_tensor_activity_decides_over_params() -> None:
    """Libraries use TF32 for what a script calls 32 bits."""
    run = with_params(recording(util=_BUSY, tensor_active=30), precision="32")
    analysis = analyze(run)
    assert (found(analysis, "full_precision"), unjudged(analysis, "full_precision")) == ([], [])


@pytest.mark.parametrize("model", ["Tesla P100-PCIE-16GB", "NVIDIA GeForce GTX 1080"])
def test_gpus_without_tensor_cores_are_left_alone(model: str) -> None:
    """Nothing could be used."""
    analysis = analyze(with_params(recording(util=_BUSY, model=model), precision="32"))
    assert (found(analysis, "full_precision"), unjudged(analysis, "full_precision")) == ([], [])


def test_an_unknown_gpu_is_not_judged() -> None:
    """The table does not say what it can do."""
    (entry,) = unjudged(analyze(recording(util=_BUSY, model="Some GPU", tensor_active=0)), "full_precision")
    assert "compute capability of Some GPU is not known" in entry.reason


def test_without_params_and_counters_it_is_not_judged() -> None:
    """Both ways to answer it are said."""
    (entry,) = unjudged(analyze(recording(util=_BUSY)), "full_precision")
    assert "--param precision=VALUE" in entry.recording
    assert "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" in entry.recording


def test_a_gpu_that_never_worked_shows_no_precision() -> None:
    """Nothing found would say that it computes in 16 bits; params may still say so."""
    idle = recording(util=steps((0, 300)))
    (entry,) = unjudged(analyze(idle), "full_precision")
    assert (entry.reason, entry.device) == ("no GPU worked, so nothing shows how it computes", None)
    assert unjudged(analyze(with_params(idle, precision="32")), "full_precision") != []
    assert unjudged(analyze(with_params(idle, precision="bf16")), "full_precision") == []


def test_a_gpu_without_counts_beside_one_with_them_is_not_judged() -> None:
    """Each GPU has arithmetic of its own, unless the params say 16 bits for all."""
    run = recording(util=97.0, tensor_active=np.array([[30.0] * 300, [np.nan] * 300]))
    (entry,) = unjudged(analyze(run), "full_precision")
    assert (entry.device, entry.reason) == ("gpu:1", "tensor activity was recorded of other GPUs only")
    assert unjudged(analyze(with_params(run, precision="bf16")), "full_precision") == []


@pytest.mark.parametrize(
    ("params", "full"),
    [
        ({"precision": "32"}, True),
        ({"precision": "fp32"}, True),
        ({"torch_dtype": "torch.float32"}, True),
        ({"fp16": "False", "bf16": "False"}, True),
        ({"use_amp": "false"}, True),
        ({"mixed_precision": "no"}, True),
        ({"trainer/precision": "16-mixed"}, False),
        ({"precision": "bf16-mixed"}, False),
        ({"fp16": "False", "bf16": "True"}, False),
        ({"model.dtype": "bfloat16", "amp": "False"}, False),
        ({"mixed_precision": "bf16"}, False),
        ({"dtype": "auto"}, None),
        ({"precision": "0.93"}, None),
        ({"data_dtype": "float32"}, None),
        ({"fp16_opt_level": "O1"}, None),
        ({"learning_rate": "32"}, None),
        ({}, None),
    ],
)
def test_what_params_say(params: dict[str, str], full: bool | None) -> None:  # noqa: FBT001 - a case of the table
    """Any that says less than 32 bits decides; names of something else say nothing."""
    said = precision_params.find_precision_param(params.items())
    assert (said and said[1]) is full
