"""Two machines or two recorders in one log: told apart, or counted once."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from gpureport.testing import Recording, analyze
from tests.support.logs import read_text, stamp

_HEADER = (
    "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], temperature.gpu, "
    "power.draw [W]"
)
_SECONDS = 600


def _row(
    second: float, *, name: str = "NVIDIA A100-SXM4-80GB", total: int = 81920, idle: bool = False, stalls: int = 0
) -> str:
    """Return a row of a GPU that works but for half a minute in two minutes and warms up, or of an idle one."""
    idle = idle or (int(second) + stalls) % 120 < 30
    degrees = 30 if idle else 40 + int(second) % 120 // 4
    return (
        f"{stamp(second)}, 0, {name}, {0 if idle else 95} %, {8 if idle else 30000} MiB, {total} MiB, {degrees}, "
        f"{50 if idle else 300 + second % 7:.2f} W"
    )


def _read(folder: Path, rows: list[str] | str) -> Recording:
    return read_text(folder, rows if isinstance(rows, str) else "\n".join([_HEADER, *rows, ""]))


def _held(recording: Recording) -> dict[str, float]:
    return {time.device: time.job_seconds for time in analyze(recording).gpu_time}


def _in_turn(one: Callable[[float], str], other: Callable[[float], str]) -> list[str]:
    return [row for second in range(_SECONDS) for row in (one(second), other(second + 0.4))]


def test_one_index_of_two_boards_is_not_judged(tmp_path: Path) -> None:
    for other in (partial(_row, idle=True, name="NVIDIA L4"), partial(_row, idle=True, total=40960)):
        recording = _read(tmp_path, _in_turn(_row, other))
        assert [device.mixed for device in recording.run.gpus] == [True]
        assert _held(recording) == {}


@pytest.mark.parametrize(
    "names", [("A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"), ("NVIDIA A100-SXM4-80GB", "NVIDIA A1O0-SXM4-80GB")]
)
def test_names_of_one_board_are_one_gpu(tmp_path: Path, names: tuple[str, str]) -> None:
    rows = [_row(second, name=names[second >= 300]) for second in range(_SECONDS)]
    assert len(_read(tmp_path, rows).run.gpus) == 1


def test_a_damaged_memory_size_is_no_gpu(tmp_path: Path) -> None:
    rows = [_row(second, total=8192 if second in {50, 200} else 81920) for second in range(_SECONDS)]
    assert len(_read(tmp_path, rows).run.gpus) == 1


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([row for second in range(_SECONDS) for row in (_row(second),) * 2], id="same stamps"),
        pytest.param(
            [row for second in range(_SECONDS) for row in (_row(second), _row(second + 0.02))], id="just behind"
        ),
        pytest.param(_in_turn(_row, _row), id="in turn"),
    ],
)
def test_two_recorders_of_one_gpu_count_once(tmp_path: Path, rows: list[str]) -> None:
    recording = _read(tmp_path, rows)
    analysis = analyze(recording)
    assert sum(_held(recording).values()) == pytest.approx(_SECONDS, abs=2)
    assert sum(dict(time.seconds)["no_samples"] for time in analysis.gpu_time) == pytest.approx(0, abs=1)
    assert recording.run.quality.clock_steps == ()


def test_a_second_machine_below_the_first_is_no_clock_set_back(tmp_path: Path) -> None:
    rows = [*map(_row, range(_SECONDS)), *(_row(second + 0.4, stalls=60) for second in range(_SECONDS))]
    recording = _read(tmp_path, rows)
    assert [device.mixed for device in recording.run.gpus] == [True]
    assert _held(recording) == {}
    assert (recording.run.ended - recording.run.started) / 1e6 == pytest.approx(_SECONDS, abs=1)
