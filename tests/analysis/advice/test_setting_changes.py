"""Which change of a setting shows that a step of the catalogue was taken."""

import pytest

from gpureport.analysis.advice import setting_changes as made
from gpureport.analysis.advice.catalogue import STEPS
from gpureport.analysis.advice.setting_changes import SettingChange
from gpureport.analysis.job.job_params import JobParams


@pytest.mark.parametrize(
    ("change", "before", "after", "expected"),
    [
        (made.MORE_WORKERS, 2, 14, True),
        (made.MORE_WORKERS, 2, float("inf"), True),
        (made.MORE_WORKERS, 14, 2, False),
        (made.MORE_WORKERS, None, 14, False),
        (made.FEWER_WORKERS, 14, 2, True),
        (made.PINNED_MEMORY_ON, 0, 1, True),
        (made.PINNED_MEMORY_ON, None, 1, True),
        (made.PINNED_MEMORY_ON, 1, 1, False),
        (made.PINNED_MEMORY_ON, 1, None, False),
        (made.LARGER_PREFETCH_FACTOR, None, 4, True),
        (made.LARGER_PREFETCH_FACTOR, None, 2, False),
        (made.MORE_ACCUMULATION, None, 1, False),
        (made.LESS_GPU_MEMORY, 80e9, 79e9, False),
        (made.LESS_GPU_MEMORY, 80e9, 40e9, True),
    ],
)
def test_direction(change: SettingChange, before: float | None, after: float | None, *, expected: bool) -> None:
    """Only a move in the direction of the step counts; what is not named has the default of the library."""
    assert change.is_made(before, after) is expected


def test_settings_exist() -> None:
    """A change names a setting that params or the recording tell."""
    known = {*JobParams.__dataclass_fields__, "gpu_count", "gpu_memory", "power_limit"}
    named = {change.setting for step in STEPS.values() for change in step.applied_by}
    assert named
    assert named <= known


def test_every_step_that_params_tell_has_its_change() -> None:
    """What a run can say was applied, two runs can say was applied between them."""
    assert [name for name, step in STEPS.items() if step.applied_check and not step.applied_by] == []
