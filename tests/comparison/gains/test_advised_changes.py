"""Changes that a finding of an earlier step had advised."""

from gpureport.comparison.gains.advised_changes import (
    AdvisedChange,
    find_advised_changes,
    find_possibly_advised_changes,
)
from gpureport.testing import Analysis, Device
from tests.comparison.configured_runs import advising, compare_configured, configured

WORKERS = advising("loader_workers", "prefetch")


def advised(*analyses: Analysis) -> tuple[AdvisedChange, ...]:
    """Return which changes of the last step had been advised."""
    steps = compare_configured(*analyses).steps
    return find_advised_changes(steps[:-1], steps[-1])


def test_a_change_that_was_advised() -> None:
    """More workers after a finding that advised more workers; the finding and its step are named."""
    found = advised(configured("a", {"workers": "2"}, findings=[WORKERS]), configured("b", {"workers": "14"}))
    assert found == (
        AdvisedChange(
            name="loader_workers", setting="workers", advised_in="a", kind="low_util_cause_unknown", cause=None
        ),
    )


def test_the_direction_counts() -> None:
    """Fewer workers are not what was advised, nor is a change of anything else."""
    assert advised(configured("a", {"workers": "14"}, findings=[WORKERS]), configured("b", {"workers": "2"})) == ()
    assert advised(configured("a", {"batch": "64"}, findings=[WORKERS]), configured("b", {"batch": "256"})) == ()


def test_a_change_that_nothing_advised() -> None:
    """A finding of the step itself, or of a later one, advises nothing beforehand."""
    assert advised(configured("a", {"workers": "2"}), configured("b", {"workers": "14"}, findings=[WORKERS])) == ()


def test_advice_of_an_earlier_step() -> None:
    """What the first step was advised may be done in the third; the latest step with the advice is named."""
    first, second = (configured(label, {"amp": "0"}, findings=[advising("mixed_precision")]) for label in "ab")
    plain = configured("b", {"amp": "0"})
    third = configured("c", {"amp": "True"})
    assert [each.advised_in for each in advised(first, plain, third)] == ["a"]
    assert [each.advised_in for each in advised(first, second, third)] == ["b"]


def test_runs_that_differ_claim_nothing() -> None:
    """A setting that not all repetitions share was not applied by the step."""
    later = [configured("b", {"workers": value}, name=value) for value in ("2", "14")]
    assert advised(configured("a", {"workers": "2"}, findings=[WORKERS]), *later) == ()


def test_without_params_nothing_is_claimed() -> None:
    """A step that recorded no params may have changed anything: switches are not taken to have been off."""
    pinned = advising("pinned_memory")
    assert advised(configured("a", findings=[pinned]), configured("b", {"pin": "True"})) == ()
    assert advised(configured("a", {"lr": "1"}, findings=[pinned]), configured("b", {"lr": "1", "pin": "True"}))


def test_the_finding_that_lost_most_is_named() -> None:
    """Of two that advise one step."""
    small, large = (
        advising("loader_workers", kind=kind, lost=lost) for kind, lost in (("io_bound", 1), ("idle_gap", 9))
    )
    found = advised(configured("a", {"workers": "2"}, findings=[small, large]), configured("b", {"workers": "14"}))
    assert [each.kind for each in found] == ["idle_gap"]


def test_hardware_that_was_advised() -> None:
    """A GPU with less memory after advice to take a smaller one."""
    large, small = (Device(id="gpu:0", index=0, memory_total_bytes=total) for total in (80 * 2**30, 40 * 2**30))
    headroom = advising("smaller_gpu", kind="mem_headroom", lost=None)
    found = advised(configured("a", device=large, findings=[headroom]), configured("b", device=small))
    assert [(each.name, each.setting) for each in found] == [("smaller_gpu", "gpu_memory")]


def possibly_advised(*analyses: Analysis) -> list[str]:
    """Return which changes of the last step may have been advised."""
    steps = compare_configured(*analyses).steps
    return [change.name for change in find_possibly_advised_changes(steps[:-1], steps[-1])]


def test_a_setting_that_one_step_names_may_have_been_advised() -> None:
    """The default of a program is not known: 8 workers may be more than before, or fewer."""
    plain = configured("a", {"lr": "1"}, findings=[WORKERS])
    named = configured("b", {"lr": "1", "workers": "8"})
    assert (advised(plain, named), possibly_advised(plain, named)) == ((), ["loader_workers"])
    assert possibly_advised(configured("a", {"workers": "8"}, findings=[WORKERS]), configured("b", {"lr": "1"}))
    assert possibly_advised(configured("a", {"workers": "2"}, findings=[WORKERS]), named) == []
    assert possibly_advised(configured("a", {"lr": "1"}), named) == []


def test_a_switch_that_is_named_was_turned_on() -> None:
    """What is off of itself leaves nothing open, nor does hardware that one log leaves out."""
    pinned = configured("a", {"lr": "1"}, findings=[advising("pinned_memory", "smaller_gpu")])
    assert possibly_advised(pinned, configured("b", {"pin": "True"})) == []
    sized = Device(id="gpu:0", index=0, memory_total_bytes=40 * 2**30)
    assert possibly_advised(pinned, configured("b", {"lr": "1"}, device=sized)) == []
