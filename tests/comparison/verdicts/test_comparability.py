"""Whether two steps were recorded alike."""

from dataclasses import replace

import pytest

from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.chain.step_pairs import pair_steps
from gpureport.comparison.verdicts.comparability import Comparability
from gpureport.report.wording.differences.comparison_reasons import describe_check
from gpureport.testing import Analysis, Device, Run, Work
from tests.report import examples

H100 = Device(
    id="gpu:0",
    index=0,
    model="NVIDIA H100 80GB HBM3",
    driver="550.54",
    power_limit_watts=700.0,
    power_window="1 s",
)


def checks(before: Analysis, after: Analysis) -> dict[str, Comparability]:
    """Return the checks of two runs by name."""
    (link,) = pair_steps(compare(examples.sampled(before, after)))
    return {check.check: check for check in link.comparability}


def analysis(name: str, info: Run | None = None, device: Device | None = None) -> Analysis:
    """Return the analysis of a run; each GPU has the properties of a device, where one is given."""
    run = info or examples.run(name)
    gpus = run.devices if device is None else tuple(replace(device, id=gpu.id, index=gpu.index) for gpu in run.devices)
    return examples.analysis(replace(run, id=name, name=name, devices=gpus))


def powered(name: str, metric: str, window: str) -> Analysis:
    """Return the analysis of a run that read power in a certain way."""
    one = replace(examples.statistics("gpu:0"), metrics=(examples.summary(metric, 200.0, 600),))
    info = replace(examples.run(name, gpus=1), id=name)
    info = replace(info, devices=tuple(replace(gpu, power_window=window) for gpu in info.devices))
    return examples.analysis(info, statistics_of=(one,))


def test_equal_recordings_are_comparable() -> None:
    """Two runs recorded alike raise no doubt."""
    found = checks(analysis("a", device=H100), analysis("b", device=H100))
    assert [name for name, check in found.items() if check.comparable is False] == []
    assert (found["gpu_models"].before, found["gpu_models"].comparable) == ("NVIDIA H100 80GB HBM3", True)
    assert (found["sampling_interval"].before, found["sampling_interval"].unit) == (1.0, "s")
    assert (found["power_limit"].after, found["driver"].after) == ("700 W", "550.54")


@pytest.mark.parametrize(
    ("check", "other", "silent"),
    [
        ("gpu_models", replace(H100, model="NVIDIA L4"), replace(H100, model=None)),
        ("driver", replace(H100, driver="610.1"), replace(H100, driver=None)),
        ("power_limit", replace(H100, power_limit_watts=350.0), replace(H100, power_limit_watts=None)),
    ],
)
def test_what_differs_is_doubtful_and_what_is_missing_is_unknown(check: str, other: Device, silent: Device) -> None:
    """Another value is a doubt with its consequence; a missing one is neither equal nor different."""
    base = analysis("a", device=H100)
    differs, missing = (checks(base, analysis("b", device=device))[check] for device in (other, silent))
    assert (differs.comparable, missing.comparable) == (False, None)
    assert missing.after is None
    assert describe_check(differs)
    assert "cannot be told" in describe_check(missing)


@pytest.mark.parametrize(
    ("before", "after", "comparable"),
    [
        (("gpu_power_watts", "1 s"), ("gpu_power_watts", "1 s"), True),
        (("gpu_power_watts", "1 s"), ("gpu_power_watts", "instant"), False),
        (("gpu_power_watts", "1 s"), ("gpu_power_instant_watts", "1 s"), False),
        (("gpu_power_watts", "unknown"), ("gpu_power_instant_watts", "unknown"), False),
        (("gpu_power_watts", "unknown"), ("gpu_power_watts", "1 s"), None),
        (("gpu_power_watts", "1 s"), ("gpu_utilization_ratio", "1 s"), None),
    ],
)
def test_power_read_in_another_way_is_doubtful(
    before: tuple[str, str], after: tuple[str, str], *, comparable: bool | None
) -> None:
    """An average of a second is not a reading of the moment; a window nobody knows tells nothing."""
    assert checks(powered("a", *before), powered("b", *after))["power_reading"].comparable is comparable


def test_number_of_gpus_length_and_interval() -> None:
    """Another number of GPUs, twice the length and a finer sampling are doubts."""
    long = replace(examples.run("b", gpus=4, seconds=1300), interval=5.0)
    found = checks(analysis("a"), analysis("b", long))
    doubted = {name for name, check in found.items() if check.comparable is False}
    assert {"gpu_count", "duration", "sampling_interval"} <= doubted
    assert (found["gpu_count"].before, found["gpu_count"].after) == ("2", "4")


def test_the_same_work_in_less_time_is_no_doubt() -> None:
    """A step that needs half the time for its work is not called doubtful; what to mind about shares is said."""
    work = Work(amount=5, unit="steps")
    runs = (examples.run(str(seconds), seconds=seconds, work=work) for seconds in (1300, 600))
    check = checks(*(analysis(run.name, run) for run in runs))["duration"]
    assert (check.comparable, describe_check(check)[:16]) == (True, "Start-up and end")


def test_less_than_twenty_seconds_are_too_short() -> None:
    """A link with a short step cannot be compared."""
    (link,) = pair_steps(compare(examples.sampled(analysis("a"), analysis("b", examples.run("b", seconds=19)))))
    assert [step.label for step in link.too_short_steps] == ["b"]
    assert not link.comparable
    assert {check.check: check.comparable for check in link.comparability}["observed_time"] is False


def test_work_in_other_units_and_the_same_run_are_doubtful() -> None:
    """Steps are not tokens; a run set against itself says nothing about a change."""
    steps, tokens = (examples.run(unit, work=Work(amount=5, unit=unit)) for unit in ("steps", "tokens"))
    assert checks(analysis("a", steps), analysis("b", tokens))["work_unit"].comparable is False
    assert checks(analysis("a"), analysis("b", tokens))["work_unit"].comparable is False
    assert checks(analysis("a"), analysis("b"))["work_unit"].comparable is None
    assert checks(analysis("a"), analysis("a"))["different_runs"].comparable is False


def test_an_unknown_zone_is_said_and_doubted_by_nobody() -> None:
    """Two unknown zones are not equal ones; no figure depends on the time of day."""
    zone = checks(analysis("a"), analysis("b", examples.run("b", timezone="UTC")))["timezone"]
    assert (zone.before, zone.after, zone.comparable) == (None, "UTC", None)
    assert describe_check(zone) == (
        "Whether they agree cannot be told: a log without a time zone is placed by its own clock only. "
        "No figure depends on it."
    )
    assert checks(analysis("a"), analysis("b"))["timezone"].comparable is None
    zoned = [analysis(name, examples.run(name, timezone=name)) for name in ("UTC", "Europe/Berlin")]
    assert checks(*zoned)["timezone"].comparable is True
