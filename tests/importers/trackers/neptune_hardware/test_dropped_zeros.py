"""The zeros that Neptune's client drops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpureport.importers.trackers.neptune_hardware.dropped_zeros import (
    GaugePoints,
    RestoredSeries,
    find_monitor_namespaces,
    restore_dropped_zeros,
)

_TICK = 10_000_000
_PERCENT = st.integers(0, 100).map(float)


def _points(values: list[float | None], start: int = 0) -> GaugePoints:
    """Return the points the client writes: none for 0 and none for what it could not read."""
    kept = [(start + _TICK * place, value) for place, value in enumerate(values) if value]
    times, numbers = zip(*kept, strict=True) if kept else ((), ())
    return GaugePoints(np.array(times, dtype=np.int64), np.array(numbers, dtype=np.float64))


def _series(result: RestoredSeries, leaf: str) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in result.values[leaf]]


@given(st.lists(st.tuples(_PERCENT, _PERCENT, _PERCENT), min_size=1, max_size=60))
def test_any_schedule_comes_back(schedule: list[tuple[float, float, float]]) -> None:
    """What was dropped for being 0 is 0 again, and only that is marked; the first cpu value stays unknown."""
    gpus = [[row[0] for row in schedule], [row[1] for row in schedule]]
    cpu = [0.0, *(row[2] for row in schedule[1:])]
    series = {"memory": _points([5.0] * len(schedule)), "cpu": _points([*cpu])}
    for index, values in enumerate(gpus):
        series |= {f"gpu_{index}": _points([*values]), f"gpu_memory_{index}": _points([1.0] * len(schedule))}
    result = restore_dropped_zeros(series)
    assert result.times.tolist() == [_TICK * place for place in range(len(schedule))]
    for index, values in enumerate(gpus):
        leaf = f"gpu_{index}"
        if not any(values):
            assert leaf in result.never
            continue
        assert _series(result, leaf) == values
        marked = result.imputed.get(leaf, np.zeros(len(schedule), dtype=np.bool_))
        assert marked.tolist() == [value == 0 for value in values]
    if any(cpu):
        assert _series(result, "cpu") == [None, *cpu[1:]]


def test_what_may_be_missing_for_another_reason_stays_unknown() -> None:
    """Power, memory, and the utilization of a GPU that did not answer, are not 0."""
    answers = [True, False, True, False]
    result = restore_dropped_zeros(
        {
            "memory": _points([4.0] * 4),
            "gpu": _points([90.0, None, 0.0, None]),
            "gpu_memory": _points([2.0 if there else None for there in answers]),
            "gpu_power": _points([300.0, None, None, None]),
        }
    )
    assert _series(result, "gpu") == [90.0, None, 0.0, None]
    assert _series(result, "gpu_memory") == [2.0, None, 2.0, None]
    assert _series(result, "gpu_power") == [300.0, None, None, None]
    assert result.zeros == 1


def test_a_gpu_never_reported_is_unknown_and_named() -> None:
    """A GPU whose utilization was not reported once may be idle or not supported: nobody can tell."""
    result = restore_dropped_zeros({"gpu_memory_0": _points([1.0, 1.0]), "memory": _points([1.0, 1.0])})
    assert result.never == ("gpu_0",)
    assert "gpu_0" not in result.values


def test_each_process_has_a_first_cpu_value() -> None:
    """After a time without ticks another process records, and its first cpu value is unknown too."""
    memory = [1.0] * 4 + [None] * 20 + [1.0] * 3
    cpu = [0.0, 50.0, 0.0, 50.0] + [None] * 20 + [0.0, 0.0, 20.0]
    result = restore_dropped_zeros({"memory": _points(memory), "cpu": _points(cpu)})
    assert _series(result, "cpu") == [None, 50.0, 0.0, 50.0, None, 0.0, 20.0]


def test_times_of_one_tick_may_differ_by_a_millisecond() -> None:
    """Where the tick of a series was rounded another way, it is still the same tick."""
    late = GaugePoints(_points([1.0, 1.0, 1.0]).times + 900, np.ones(3))
    result = restore_dropped_zeros(
        {"memory": _points([1.0, 1.0, 1.0]), "gpu_memory": late, "gpu": _points([7.0, 0.0, 0.0])}
    )
    assert _series(result, "gpu") == [7.0, 0.0, 0.0]


def test_of_two_points_at_one_tick_the_last_counts() -> None:
    """A series written twice at one time has the later value."""
    twice = GaugePoints(np.array([0, 0], dtype=np.int64), np.array([3.0, 4.0]))
    assert _series(restore_dropped_zeros({"memory": twice}), "memory") == [4.0]


def test_nothing_recorded_is_nothing() -> None:
    """A namespace without points has no ticks."""
    assert len(restore_dropped_zeros({}).times) == 0
    assert len(restore_dropped_zeros({"gpu": _points([])}).times) == 0


def test_a_training_metric_is_no_namespace() -> None:
    """`train/memory` is not hardware; `stages/memory` beside the name of a process is."""
    series = ["monitoring/ab12cd34/cpu", "monitoring/ab12cd34/gpu_0", "train/memory", "eval/gpu", "stages/memory"]
    assert find_monitor_namespaces(series, ["stages/hostname", "batch_size"]) == {
        "monitoring/ab12cd34": ["cpu", "gpu_0"],
        "stages": ["memory"],
    }
