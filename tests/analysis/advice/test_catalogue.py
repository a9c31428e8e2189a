"""The catalogue is whole: every kind has steps, every step says what to do, when, at what risk and how to check it."""

import re

import pytest

from gpureport.analysis import RULES
from gpureport.analysis.advice.catalogue import CHAPTERS, STEPS
from gpureport.analysis.advice.run_facts import RunFacts
from gpureport.analysis.advice.step import Step
from gpureport.analysis.advice.steps_by_loss import PATHS, find_steps

KINDS = [kind for rule in RULES for kind in rule.kinds]
_GENERAL = {"data_parallel", "other_framework"}
"""Steps that answer no finding: they are for what the checklist leaves open."""


@pytest.mark.parametrize("step", STEPS.values(), ids=lambda step: step.name)
def test_every_step_is_complete(step: Step) -> None:
    """Whole sentences everywhere, a source, and conditions that can be asked of an empty recording."""
    assert re.fullmatch(r"[a-z_]+", step.name)
    assert len(step.do.split()) >= 8
    for text in (step.do, step.when, step.risk, step.check):
        assert text.endswith(".")
        assert text[0].isupper()
    assert step.source
    assert [condition.words for condition in step.conditions if condition.holds(RunFacts(gpus=0)) is not None] == []


def test_no_name_is_given_twice() -> None:
    """Names and titles tell steps apart."""
    steps = [step for _, chapter in CHAPTERS for step in chapter]
    assert len({step.name for step in steps}) == len({step.title for step in steps}) == len(steps) == len(STEPS)


def test_paths_lead_to_steps() -> None:
    """Every name is of a step, and no step is out of reach."""
    named = {name for paths in PATHS.values() for path in paths for name in path.steps} | _GENERAL
    assert named == set(STEPS)
    assert [path for paths in PATHS.values() for path in paths if len(set(path.steps)) != len(path.steps)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_steps(kind: str) -> None:
    """Also for a cause nobody thought of."""
    assert find_steps(kind)
    assert find_steps(kind, "something new")


def test_the_cause_decides() -> None:
    """A path with causes is for these alone; the last of a kind is for all others."""
    assert find_steps("idle_gap", "checkpoint")[0] == "asynchronous_checkpoints"
    assert find_steps("idle_gap", "io")[0] == "cache_near_compute"
    assert "find_hung_rank" in find_steps("hollow_util", "hang")
    assert "find_hung_rank" not in find_steps("hollow_util")
    assert find_steps("hw_throttle", "power brake") == ("power_supply",)
    for *first, last in PATHS.values():
        assert last.causes == ()
        assert all(path.causes for path in first)


@pytest.mark.parametrize(
    "word",
    [
        *("batch", "Accumulate", "BF16", "num_workers", "prefetch", "pin_memory", "persistent_workers", "SSD"),
        *("DALI", "processes", "TFRecord", "Parquet", "WebDataset", "async_save", "torch.compile", "CUDA graph"),
        *("DistributedDataParallel", "smaller GPU", "airflow", "nvidia-smi -pl", "LARS", "tokenis", "MIG", "Optuna"),
        *("tf.data.AUTOTUNE", "Grain", "cudnn.benchmark", "tuning guide", "Fine-tune"),
    ],
)
def test_the_published_practice_is_in_it(word: str) -> None:
    """What practitioners are told, in concrete words."""
    assert any(word in step.do for step in STEPS.values())
