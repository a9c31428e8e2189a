"""A synthetic log of any size: 8 GPUs, interleaved, a sample a second, whose job trains, evaluates, waits and rests.

Run by hand to make one: `python -m tests.benchmarks.log FILE SIZE`, where SIZE is like `200MB`.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.signal import lfilter

HEADER = (
    "timestamp, index, uuid, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], "
    "temperature.gpu, power.draw [W], clocks.current.sm [MHz], clocks.current.memory [MHz], clocks_event_reasons.active"
)
GPUS = 8
SEED = 20261121
_TICKS = 32_768
_START = 1_773_480_413_000
_ABSENT = 0.0005
_MEAN_SECONDS = (300, 40, 60, 120)
_UTILISATION = ((92, 100), (0, 1), (60, 85), (15, 65))
_MEMORY = (71_412, 71_412, 64_230, 71_412)
_POWER = (640.0, 92.0, 470.0, 260.0)
_CLOCKS = (1_755, 1_980, 1_980, 1_980)
_REASONS = (0x4, 0x1, 0x0, 0x0)
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}

Ints = npt.NDArray[np.int64]


def size_of(text: str) -> int:
    """Return the bytes that a text like `200MB` means."""
    return round(float(text[:-2]) * _UNITS[text[-2:].upper()])


def _states(chance: np.random.Generator) -> Ints:
    """Return what the job does at each tick: 0 trains, 1 rests, 2 evaluates, 3 waits for data."""
    kinds = chance.choice(4, size=_TICKS // 8, p=[0.55, 0.15, 0.1, 0.2])
    lengths = 1 + chance.exponential(np.take(_MEAN_SECONDS, kinds)).astype(np.int64)
    return np.repeat(kinds, lengths)[:_TICKS].astype(np.int64)


def _taken(texts: list[str], places: npt.NDArray[Any]) -> Any:  # noqa: ANN401 - an Arrow array; the stubs want its type
    """Return a text a row."""
    return pc.take(pa.array(texts), pa.array(places))


def _texts(codes: npt.NDArray[Any], unit: str, chance: np.random.Generator | None = None, digits: int = 0) -> Any:  # noqa: ANN401 - as above
    """Return cells, each value with its unit; now and then one without a value."""
    values, places = np.unique(codes, return_inverse=True)
    texts = [f"{value / 10**digits:.{digits}f}{unit}" for value in values.tolist()] + ["[N/A]"]
    where = places.ravel()
    if chance is not None:
        where = np.where(chance.random(len(where)) < _ABSENT, len(values), where)
    return _taken(texts, where)


def _block(number: int) -> Any:  # noqa: ANN401 - an Arrow buffer, which the stubs do not let be read
    """Return the rows of some ticks as bytes."""
    chance = np.random.default_rng((SEED, number))
    states = np.repeat(_states(chance), GPUS)
    rows = len(states)
    gpu = np.tile(np.arange(GPUS), _TICKS)
    low, high = np.array(_UTILISATION)[states].T
    busy = np.where(states == 1, 0, chance.integers(low, high + 1))
    ticks = _START + (number * _TICKS + np.arange(_TICKS)) * 1_000 + chance.integers(0, 4, _TICKS)
    stamps = np.repeat(ticks, GPUS) + gpu * 2
    heat = lfilter([0.05], [1, -0.95], np.take(_POWER, states).reshape(-1, GPUS), axis=0).ravel()
    power = np.take(_POWER, states) + chance.normal(0, 1, rows) * np.where(states == 1, 0.6, 25)
    columns: list[Any] = [
        pc.strftime(pa.array(stamps, pa.timestamp("ms")), "%Y/%m/%d %H:%M:%S"),
        _texts(gpu, ""),
        _taken([f"GPU-{index}fd5ee77-0b3c-4f6a-9a53-1c3f2f0b7d{index:02d}" for index in range(GPUS)], gpu),
        _texts(busy, " %", chance),
        _texts(busy * 6 // 10 + chance.integers(0, 5, rows) * (busy > 0), " %"),
        _texts(np.take(_MEMORY, states) + gpu * 4, " MiB"),
        _texts(np.full(rows, 81_559), " MiB"),
        _texts((30 + heat / 16).astype(np.int64) + gpu % 3, ""),
        _texts((power * 100).astype(np.int64), " W", chance, digits=2),
        _texts(np.take(_CLOCKS, states) - 15 * (chance.random(rows) < 0.01), " MHz"),
        _texts(np.full(rows, 2_619), " MHz"),
        _taken([f"0x{reason:016x}\n" for reason in _REASONS], states),
    ]
    return pc.binary_join_element_wise(*columns, ", ").buffers()[2]


def write(path: Path, size: int, first: int = 0) -> None:
    """Write a log of about `size` bytes; the same size is the same log.

    Args:
        path: the file.
        size: bytes.
        first: block of some nine hours that it begins with; logs that begin with another share nothing.
    """
    left = size
    with path.open("wb") as file:
        left -= file.write(f"{HEADER}\n".encode())
        number = first
        while left > 0:
            data = bytes(memoryview(_block(number)))
            if len(data) > left:
                data = data[: data.rfind(b"\n", 0, left) + 1] or data[: data.find(b"\n") + 1]
                left = 0
            left -= file.write(data)
            number += 1


if __name__ == "__main__":
    write(Path(sys.argv[1]), size_of(sys.argv[2]))
