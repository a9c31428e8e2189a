"""Where GPU time goes for findings made by hand, which may overlap in any way that no log gives at will."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.analysis import RULES, build_context
from gpureport.analysis.account.gpu_time import attribute_gpu_times
from gpureport.testing import GPU_TIME_CLASSES, Finding, GpuTime, Recording, finding, recording, steps

KINDS = ["cpu_bound", "cpu_bound_single", "io_bound", "transfer_bound", "idle_gap", "hollow_util", "underutilised"]
KINDS += ["startup_idle", "tail_idle", "unused_gpu", "imbalance"]
STRETCHES = st.tuples(st.integers(0, 300), st.integers(1, 200)).map(lambda pair: (pair[0], pair[0] + pair[1]))
MADE = st.builds(
    lambda kind, cause, stretches, devices: finding(kind, *stretches, cause=cause, devices=devices),
    st.sampled_from(KINDS),
    st.sampled_from(["checkpoint", "data", "io", "hang", "unused", "unknown", None]),
    st.lists(STRETCHES, max_size=3),
    st.sampled_from([(), ("gpu:0",)]),
)
PARTS = st.lists(
    st.tuples(st.sampled_from([0.0, 3.0, 30.0, 97.0, float("nan")]), st.integers(1, 60)), min_size=2, max_size=10
)


def time_of(run: Recording, findings: list[Finding], device: str = "gpu:0") -> GpuTime:
    context = replace(build_context(run), earlier_findings=tuple(findings))
    rules = [rule for rule in RULES if rule.name not in {"low_util_cause_unknown", "throttling"}]
    return next(entry for entry in attribute_gpu_times(context, rules) if entry.device == device)


@settings(max_examples=80, deadline=None)
@given(PARTS, st.lists(MADE, max_size=8), st.sampled_from([0.1, 1.0, 5.0]), st.sampled_from([0.0, 1.0]))
def test_whatever_is_found_every_microsecond_is_counted_once(
    parts: list[tuple[float, int]], findings: list[Finding], every: float, slow: float
) -> None:
    """Classes add up to the run, and causes to their class, to the microsecond."""
    util = steps(*parts)
    bits = np.full(len(util), slow)
    run = recording(util=util, every=every, sw_thermal_slowdown=bits, clock=1400 - 700 * bits)
    entry = time_of(run, findings)
    assert [name for name, _ in entry.seconds] == list(GPU_TIME_CLASSES)
    assert min(seconds for _, seconds in entry.seconds) >= 0
    assert sum(round(seconds * 1e6) for _, seconds in entry.seconds) == run.run.ended - run.run.started
    for name in ("idle", "waiting_for_input"):
        parts_of = sum(round(part.seconds * 1e6) for part in entry.parts if part.name == name)
        assert parts_of == round(dict(entry.seconds)[name] * 1e6)


def test_time_is_divided_by_cause_and_counted_once() -> None:
    """Gaps by their own cause, rest before the job apart; where two kinds of waiting overlap the first has the time."""
    util = steps((0, 4), (97, 96), (0, 20), (97, 100), (0, 30), (97, 200))
    gaps = [finding("idle_gap", (99, 119), cause="checkpoint"), finding("idle_gap", (219, 249))]
    waits = [
        finding("io_bound", (200, 420)),
        finding("cpu_bound", (100, 300)),
        finding("idle_gap", (399, 419), cause="io"),
    ]
    idle = time_of(recording(util=util), gaps)
    waiting = time_of(recording(util=steps((97, 100), (40, 300), (0, 20), (97, 100))), waits)
    told = [{part.cause: part.seconds for part in entry.parts} for entry in (idle, waiting)]
    assert told[0] == pytest.approx({"checkpoint": 20, "unknown": 30, "outside gaps": 3.5}, abs=0.6)
    assert told[1] == pytest.approx({"cpu_bound": 120, "io_bound": 80}, abs=1.5)
    assert dict(waiting.seconds)["idle"] == 0


def test_hollow_time_is_what_was_lost_of_it() -> None:
    """All of it where nobody says how much."""
    run = recording(util=steps((97, 100), (90, 200), (97, 100)))
    for lost, hollow in ((None, 200), (200, 200), (150, 150), (0, 0)):
        seconds = dict(time_of(run, [finding("hollow_util", (100, 300), lost=lost)]).seconds)
        got = seconds["hollow"], seconds["computing"]
        assert got == pytest.approx((hollow, 199 * 0.97 + (200 - hollow) * 0.9), abs=1), lost


def test_a_gpu_that_was_never_used_is_not_idle() -> None:
    """Whoever found it; the peer keeps its idle time."""
    run = recording(util=[steps((0, 300)), steps((97, 100), (0, 20), (97, 180))])
    for unused in (finding("unused_gpu", cause="unused"), finding("idle_gap", (0, 299), cause="unused")):
        findings = [unused, finding("idle_gap", (99, 119), devices=("gpu:1",))]
        both = [dict(time_of(run, findings, device).seconds) for device in ("gpu:0", "gpu:1")]
        assert [(entry["unused"], round(entry["idle"])) for entry in both] == [(299, 0), (0, 20)]
