"""What held the clocks of each GPU, from numbers worked out by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpureport.analysis.results import Effect
from gpureport.testing import ClockEventTotal, Recording, analyze, recording, steps

_BUSY: dict[str, Any] = {"util": 98.0, "power": 300.0, "power_limit": 400.0}


def ledger(run: Recording) -> dict[str, ClockEventTotal]:
    """Return the entries of the first GPU by reason."""
    return {entry.reason: entry for entry in analyze(run).throttle_ledger if entry.device == "gpu:0"}


def test_a_reason_has_its_time_its_clock_and_its_cost() -> None:
    """60 of 300 s at 1120 of 1400 MHz: a fifth of a fifth of the busy time."""
    bits = steps((0, 100), (1, 60), (0, 140))
    clock = steps((1400, 100), (1120, 60), (1400, 140))
    entry = ledger(recording(**_BUSY, clock=clock, sw_thermal_slowdown=bits))["sw_thermal_slowdown"]
    assert entry.lost_ratio == pytest.approx(0.04)
    assert replace(entry, lost_ratio=None) == ClockEventTotal(
        device="gpu:0",
        reason="sw_thermal_slowdown",
        effect=Effect.HARMFUL,
        busy_seconds=60.0,
        counted=None,
        clock_hertz=1120e6,
        reference_hertz=1400e6,
        reference="that of other busy samples",
        lost_ratio=None,
    )


def test_time_at_rest_is_not_counted() -> None:
    """Of 60 s with the bit, 20 s fall on a busy GPU."""
    run = recording(util=steps((98, 20), (0, 40), (98, 60)), hw_slowdown=steps((1, 60), (0, 60)))
    assert ledger(run)["hw_slowdown"].busy_seconds == 20


def test_the_power_cap_is_benign_and_set_against_the_highest_clock() -> None:
    """Always at its limit, it has no clock of its own to compare: 900 of 1500 MHz are 40% less."""
    run = recording(**_BUSY, clock=900, clock_max=1500, sw_power_cap=np.ones(100))
    entry = ledger(run)["sw_power_cap"]
    assert (entry.effect, entry.reference) == (Effect.BENIGN, "the highest clock")
    assert entry.lost_ratio == pytest.approx(0.4)


def test_a_chosen_clock_has_no_cost() -> None:
    """Other samples do not show what a locked clock costs, and rest costs nothing."""
    run = recording(**_BUSY, clock=900, applications_clocks_setting=np.ones(100), gpu_idle=np.ones(100))
    entries = ledger(run)
    assert [entries[reason].lost_ratio for reason in ("applications_clocks_setting", "gpu_idle")] == [None, None]
    assert {entry.effect for entry in entries.values()} == {Effect.BENIGN}


def test_seconds_of_the_counter_stand_beside_those_of_the_samples() -> None:
    """At 30 s, samples show none of the 36 s the driver counted."""
    counter = np.cumsum(np.r_[500.0, np.zeros(10), np.full(3, 12.0), np.zeros(10)])
    run = recording(
        **_BUSY, every=30, sw_thermal_slowdown=np.zeros(24), sw_thermal_slowdown_seconds_total=counter, clock=1400
    )
    entry = ledger(run)["sw_thermal_slowdown"]
    assert entry.counted is not None
    assert (entry.busy_seconds, entry.counted.total, entry.counted.in_gaps) == (0, 36, 0)
    assert (entry.clock_hertz, entry.lost_ratio) == (None, None)


def test_a_counter_without_its_bit_is_an_entry() -> None:
    """What was not recorded is null, and what was counted is there."""
    entry = ledger(recording(**_BUSY, sync_boost_seconds_total=np.arange(60) * 0.5))["sync_boost"]
    assert (entry.busy_seconds, entry.effect) == (None, Effect.UNCLASSIFIED)
    assert entry.counted is not None
    assert entry.counted.total == pytest.approx(29.5)


def test_bits_without_a_name_stay_hex() -> None:
    """Each bit of a mask is its own entry, the highest of 64 too."""
    masks = np.where(np.arange(60) < 20, 2.0**11 + 2.0**63, 0.0)
    entries = ledger(recording(**_BUSY, unknown_bits=masks))
    assert {name: entry.busy_seconds for name, entry in entries.items()} == {"0x800": 20, "0x8000000000000000": 20}
    assert {entry.effect for entry in entries.values()} == {Effect.UNCLASSIFIED}


def test_a_reason_that_never_held_is_zero_not_null() -> None:
    """It was recorded, and did not occur."""
    entry = ledger(recording(**_BUSY, clock=1400, hw_thermal_slowdown=np.zeros(60)))["hw_thermal_slowdown"]
    assert (entry.busy_seconds, entry.lost_ratio) == (0, 0)


def test_nothing_recorded_is_no_ledger() -> None:
    """Without clock event reasons there is nothing to list."""
    assert analyze(recording(**_BUSY, clock=1400)).throttle_ledger == ()


def test_what_was_counted_in_a_log_gap_alone_has_no_cost() -> None:
    """No sample speaks for that time."""
    times = np.concatenate([np.arange(100), np.arange(200, 300)])
    counter = np.where(times < 200, 5.0, 25.0)
    run = recording(**_BUSY, times=times, clock=1400, sw_power_cap=np.zeros(200), sw_power_cap_seconds_total=counter)
    entry = ledger(run)["sw_power_cap"]
    assert entry.counted is not None
    assert (entry.counted.total, entry.counted.in_gaps, entry.lost_ratio) == (20, 20, None)
