"""Which params tell the length of a job."""

import pytest

from gpureport.comparison.setup.job_length import is_length_of_job


@pytest.mark.parametrize("key", ["steps", "--max-iters", "trainer.maxSteps", "config/training_args/epochs"])
def test_steps_and_epochs_are_the_length_of_a_job(key: str) -> None:
    """Whatever a framework calls them."""
    assert is_length_of_job(key)


@pytest.mark.parametrize("key", ["workers", "warmup_steps", "eval.steps", "sampler.num_steps", "batch_size"])
def test_other_settings_are_not(key: str) -> None:
    """Nor steps of something else than the job."""
    assert not is_length_of_job(key)
