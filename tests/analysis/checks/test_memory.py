"""How full GPU memory was, memory that keeps growing, and memory still held after the work."""

from typing import Any

import numpy as np

from gpureport.testing import GIB, Floats, Recording, analyze, findings_of, steps, unjudged
from tests.analysis.tables import Table, check, rec, want

UTIL = steps((0, 20), (97, 280))
KINDS = ("mem_headroom", "mem_pressure", "mem_prealloc")


def growing(peak: float) -> Floats:
    """Return memory that an allocator takes in steps, the last of which comes in the middle of the run."""
    return np.concatenate([np.zeros(10), np.linspace(1, peak * 0.7, 20), steps((peak * 0.9, 120), (peak, 150))])


def with_memory(memory: Any, util: Any = UTIL, **known: Any) -> Recording:
    return rec(util=util, memory=memory, **known)


def test_room_pressure_and_preallocation_exclude_each_other() -> None:
    again = np.concatenate([steps((0, 10)), np.tile(steps((62, 100), (20, 20)), 5)])
    table = {
        "room": (with_memory(growing(30)), {"mem_headroom"}),
        "pressure": (with_memory(growing(78)), {"mem_pressure"}),
        "preallocation": (with_memory(steps((0, 10), (62, 290))), {"mem_prealloc"}),
        "well filled": (with_memory(growing(66)), set()),
        "reserved memory not known": (with_memory(growing(75)), set()),
        "a reserve of all of it": (with_memory(growing(30), reserved=80 * GIB), {"mem_headroom"}),
        "the fullest GPU decides": (with_memory([growing(20), growing(60)]), set()),
        "a step that goes on growing": (with_memory(np.concatenate([np.zeros(10), np.linspace(60, 63, 290)])), set()),
        "a bare context": (with_memory(steps((0.5, 300)), np.zeros(300)), set()),
        "given back and taken again": (with_memory(again, np.full(len(again), 97.0)), set()),
    }
    wrong = {}
    for name, (run, kinds) in table.items():
        got = {one.kind for one in analyze(run).findings} & set(KINDS)
        if got != kinds:
            wrong[name] = got
    assert wrong == {}


def test_how_full_memory_was() -> None:
    mem_pressure: Table = {
        "less reserved memory": want(with_memory(growing(75), reserved=4 * GIB), severity="warning"),
        "the fuller of two": want(with_memory([growing(79.92), growing(20)]), gpus="0"),
        "never moves": want(with_memory(steps((78.0, 300))), confidence="low", ruled_out=0),
    }
    check("mem_pressure", mem_pressure)
    mem_headroom: Table = {
        "little for a GPU that works": want(with_memory(steps((0.5, 20), (2.5, 280))), confidence="high"),
        "beside an unused GPU": want(with_memory([growing(2.5), np.full(300, 0.5)], [UTIL, np.zeros(300)]), gpus="0"),
        "never moves": want(with_memory(steps((30.0, 300))), confidence="low", ruled_out=0),
        "a small step that stays": want(with_memory(steps((0.6, 10), (7.3, 290))), ruled_out=1),
    }
    check("mem_headroom", mem_headroom)
    rare = with_memory(steps((0, 1), (50.2, 60)), steps((0, 1), (98, 60)), every=1000.0)
    check("mem_headroom", {"16 min between samples": want(rare, confidence="low", ruled_out=0)})
    mem_prealloc: Table = {
        "released at the end": want(with_memory(steps((0, 10), (62, 280), (0, 10))), severity="info"),
        "16 min between samples": (rare, "coarse_samples"),
    }
    check("mem_prealloc", mem_prealloc)
    for kind in KINDS:
        check(
            kind,
            {
                "no memory": (rec(util=UTIL), "not_recorded", "gpu_memory_used_bytes"),
                "no size": (with_memory(growing(30), memory_total=None), "not_recorded", "gpu_memory_total_bytes"),
            },
        )


def test_preallocation_is_ruled_out_only_where_it_could_be_assessed() -> None:
    for seconds, peak in ((30, 52), (120, 52), (30, 30), (120, 30)):
        memory = steps((0.9 * peak, seconds // 2), (peak, seconds // 2))
        analysis = analyze(with_memory(memory, steps((97, seconds))))
        (room,) = findings_of(analysis, "mem_headroom")
        is_assessed = seconds > 60 or peak < 48
        assert (unjudged(analysis, "mem_prealloc") == []) == is_assessed, (seconds, peak)
        assert (bool(room.ruled_out), str(room.confidence)) == (is_assessed, "high" if is_assessed else "medium")


LONG = steps((0, 20), (97, 1200))


def leaking(per_minute: float, start: float = 20.0) -> Floats:
    grown = start + per_minute * np.arange(1200) / 60
    return np.concatenate([np.zeros(20), np.floor(grown * 50) / 50])


def test_memory_that_keeps_growing() -> None:
    first, second = leaking(2.0)[20:], leaking(2.0)[20:400]
    restarted = with_memory(
        np.concatenate([np.zeros(20), first, np.zeros(30), second]),
        np.concatenate([steps((0, 20), (97, 1200)), steps((0, 30)), steps((97, 380))]),
    )
    times = np.concatenate([np.arange(620), 1800 + np.arange(600)]).astype(np.float64)
    holed = np.concatenate([np.zeros(20), 20 + 0.5 * (times[20:] - 20) / 60])
    half = 0.5 * GIB / 60
    table: Table = {
        "half a GiB a minute": want(
            with_memory(leaking(0.5), LONG),
            severity="problem",
            confidence="high",
            spans=[(260, 1219)],
            within=5,
            evidence={"gpu_memory_used_bytes": (half, 0.1), "time until memory is full": 6000.0},
        ),
        "0.4 GiB an hour": want(
            with_memory(10 + 0.4 * np.arange(3000) / 120, steps((97, 3000)), every=30.0), severity="warning"
        ),
        "less what the driver keeps": want(
            with_memory(leaking(0.5), LONG, reserved=10 * GIB), evidence={"time until memory is full": 4800.0}
        ),
        "up to a restart": want(
            restarted, spans=[(260, 1219)], within=12, evidence={"gpu_memory_used_bytes": 4 * half}
        ),
        "over a hole in the log": want(with_memory(holed, LONG, times=times), evidence={"gpu_memory_used_bytes": half}),
        "one of two GPUs": want(with_memory([steps((0, 20), (30, 1200)), leaking(0.5)], LONG), gpus="1"),
        "thirty samples": want(with_memory(np.linspace(10, 40, 30), steps((97, 30)), every=60.0), confidence="medium"),
        "less than 2%": with_memory(leaking(0.05), LONG),
        "warm-up": with_memory(np.concatenate([np.zeros(20), np.linspace(20, 60, 250), np.full(950, 60.0)]), LONG),
        "running maximum": with_memory(np.concatenate([np.zeros(20), 60 - 40 * np.exp(-np.arange(1200) / 150)]), LONG),
        "one step": with_memory(np.concatenate([np.zeros(20), np.full(600, 20.0), np.full(600, 40.0)]), LONG),
        "sawtooth": with_memory(np.concatenate([np.zeros(20), np.tile(np.linspace(20, 30, 60), 20)]), LONG),
        "reserved at once": (with_memory(steps((0, 20), (62, 1200)), LONG), "memory_reserved_at_once"),
        "16 samples": (with_memory(np.linspace(10, 40, 20), steps((97, 20)), every=60.0), "too_few_samples"),
        "no memory": (rec(util=LONG), "not_recorded", "gpu_memory_used_bytes"),
        "no size": (with_memory(leaking(0.5), LONG, memory_total=None), "not_recorded", "gpu_memory_total_bytes"),
    }
    check("mem_leak", table)


def test_a_leak_leaves_no_room() -> None:
    analysis = analyze(with_memory(np.linspace(1, 40, 300), steps((97, 300))))
    assert [one.kind for one in analysis.findings if one.kind in {"mem_leak", "mem_headroom"}] == ["mem_leak"]
    assert [entry.code for entry in unjudged(analysis, "mem_headroom")] == ["memory_keeps_growing"]


ENDED, HELD = steps((0, 20), (97, 280), (0, 300)), steps((0, 5), (40, 595))


def test_memory_held_after_the_work() -> None:
    cpu = steps((60, 300), (2, 300))
    table: Table = {
        "held": want(with_memory(HELD, ENDED), spans=[(299.5, 599)], within=2, severity="warning", confidence="medium"),
        "beside an idle CPU": want(with_memory(HELD, ENDED, cpu=cpu, host={"core": cpu}), confidence="high"),
        "released": with_memory(steps((0, 5), (40, 300), (0, 295)), ENDED),
        "mostly released": with_memory(steps((0, 5), (40, 300), (15, 295)), ENDED),
        "was there before": with_memory(40.0, ENDED),
        "there from the first row on": with_memory(40.0, steps((97, 300), (0, 300))),
        "a context": with_memory(steps((0, 5), (0.4, 595)), ENDED),
        "CPU busy": with_memory(HELD, ENDED, cpu=steps((60, 300), (40, 300))),
        "a core busy": with_memory(
            HELD, ENDED, cpu=steps((60, 300), (5, 300)), host={"core": steps((90, 300), (99, 300))}
        ),
        "another GPU works": with_memory(HELD, [ENDED, steps((97, 600))]),
        "no memory": (rec(util=ENDED), "not_recorded", "gpu_memory_used_bytes"),
    }
    check("zombie_memory", table)
