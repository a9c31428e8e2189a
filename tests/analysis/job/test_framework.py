"""Which framework params and tags name."""

import pytest

from gpureport.analysis.job.framework import Framework, find_framework

PYTORCH, TENSORFLOW, JAX = Framework.PYTORCH, Framework.TENSORFLOW, Framework.JAX


@pytest.mark.parametrize(
    ("name", "value", "framework"),
    [
        ("framework", "pytorch", PYTORCH),
        ("torch_version", "2.11.0", PYTORCH),
        ("torch_dtype", "bfloat16", PYTORCH),
        ("mlflow.autologging", "tensorflow", TENSORFLOW),
        ("framework", "TF 2.16", TENSORFLOW),
        ("KERAS_BACKEND", "jax", JAX),
        ("flax/version", "0.10", JAX),
        ("source_code/integrations/neptune-pytorch-lightning", "1.1.0", PYTORCH),
    ],
)
def test_a_param_names_the_framework(name: str, value: str, framework: Framework) -> None:
    """By its own name or by its value, however it is written."""
    assert find_framework([(name, value), ("lr", "0.1")]) is framework


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("allow_tf32", "True"),
        ("tf_ratio", "0.5"),
        ("torch_compile", "False"),
        ("dist_backend", "nccl"),
        ("framework", "own"),
        ("note", "ported from torch"),
    ],
)
def test_what_names_none(name: str, value: str) -> None:
    """A word that only looks like one, a switch that is off, and free text."""
    assert find_framework([(name, value)]) is None


def test_two_frameworks_are_none() -> None:
    """A run that names two does not say which one feeds the GPU."""
    assert find_framework([("torch_version", "2.11"), ("jax_version", "0.7")]) is None
