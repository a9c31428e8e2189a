"""Runs grouped by one or two settings: what `--by` takes, labels, and the order of groups."""

from dataclasses import replace

import pytest

from gpureport import testing
from gpureport.comparison.study.factors import (
    Factor,
    assign_steps,
    describe_factors,
    group_runs,
    order_values,
    parse_factors,
)
from gpureport.errors import SettingsError
from gpureport.testing import Run

FRAMEWORK, BATCH = Factor(kind="param", key="framework"), Factor(kind="param", key="batch_size")


def run(framework: str, batch: str) -> Run:
    """Return a run with two params."""
    made = testing.recording(util=[50, 50]).run
    return replace(made, params=(("framework", framework), ("batch_size", batch)))


@pytest.mark.parametrize(
    ("text", "factors"),
    [
        ("step", (Factor(kind="step"),)),
        ("param:framework,param:batch_size", (FRAMEWORK, BATCH)),
        ("gpu,param:precision", (Factor(kind="gpu"), Factor(kind="param", key="precision"))),
        ("param:precision,gpu", (Factor(kind="param", key="precision"), Factor(kind="gpu"))),
        ("param:a,b", (Factor(kind="param", key="a,b"),)),
        ("tag:mlflow.user", (Factor(kind="tag", key="mlflow.user"),)),
    ],
)
def test_what_by_takes(text: str, factors: tuple[Factor, ...]) -> None:
    """One setting or two; a comma that no setting follows belongs to the key."""
    assert parse_factors(text) == factors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour", "'colour' is none of step, folder, gpu, param:KEY and tag:KEY"),
        ("param:", "'param:' is none of"),
        ("gpu:0", "'gpu:0' is none of"),
        ("param:a,param:b,gpu", "names 3 settings"),
        ("gpu,gpu", "names one setting twice"),
        ("step,param:a", "mixes steps with groups"),
    ],
)
def test_what_by_refuses(text: str, message: str) -> None:
    """Each with what is wrong."""
    with pytest.raises(ValueError, match=message):
        parse_factors(text)


@pytest.mark.parametrize(
    ("values", "ordered"),
    [
        (["16", "32", "8"], ["8", "16", "32"]),
        (["1e-3", "1e-4", ".5"], ["1e-4", "1e-3", ".5"]),
        (["16GB", "8 GB"], ["8 GB", "16GB"]),
        (["16GB", "8GiB"], ["16GB", "8GiB"]),
        (["torch", "jax", "torch"], ["torch", "jax"]),
        (["32", "auto", "8"], ["32", "auto", "8"]),
    ],
)
def test_numbers_stand_by_size(values: list[str], ordered: list[str]) -> None:
    """Numbers of one unit by size, anything else as it came."""
    assert order_values(values) == ordered


def test_two_settings_make_groups() -> None:
    """The first setting as it came, the second by size; runs of one group keep their order."""
    runs = [run("torch", "16"), run("jax", "8"), run("torch", "8"), run("torch", "16"), run("jax", "16")]
    assert group_runs(runs, (FRAMEWORK, BATCH)) == [
        (2, "framework=torch, batch_size=8"),
        (0, "framework=torch, batch_size=16"),
        (3, "framework=torch, batch_size=16"),
        (1, "framework=jax, batch_size=8"),
        (4, "framework=jax, batch_size=16"),
    ]
    assert describe_factors((FRAMEWORK, BATCH)) == "framework and batch_size"


def test_a_run_without_the_setting_is_named() -> None:
    """What it has instead is said."""
    with pytest.raises(SettingsError, match="has no param 'precision'; it has batch_size, framework"):
        group_runs([run("jax", "8")], (Factor(kind="param", key="precision"),))


def test_a_run_in_no_folder_is_named() -> None:
    """A run whose log lies in no folder has no step by folder; by its step label it keeps its own."""
    loose = replace(run("jax", "8"), sources=())
    with pytest.raises(SettingsError, match="lies in no folder of its own"):
        assign_steps([loose, loose], (Factor(kind="folder"),))
    assert assign_steps([loose, loose], (Factor(kind="step"),)) == [(0, None), (1, None)]
