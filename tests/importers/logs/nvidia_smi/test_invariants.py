"""What must not change, or change by a line at most, whatever happens to a log on its way."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.importers import IMPORTER_VERSION, Labels, Reading, ReadOptions, find_runs
from gpureport.store import Store
from gpureport.testing import Recording
from tests.importers.written_logs import read_text, stamp

if TYPE_CHECKING:
    import pyarrow as pa

BOUNDED = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
CELLS: dict[str, Callable[[int, int], str]] = {
    "timestamp": lambda second, gpu: stamp(second + gpu / 1000),
    "index": lambda _, gpu: str(gpu),
    "uuid": lambda _, gpu: f"GPU-{gpu:08d}-1111-2222-3333-444444444444",
    "utilization.gpu [%]": lambda second, gpu: f"{(second * 37 + gpu * 11) % 101} %",
    "memory.used [MiB]": lambda second, gpu: f"{1000 + (second * 613 + gpu) % 40000} MiB",
    "power.draw [W]": lambda second, gpu: f"{50 + (second * 7919 + gpu) % 30000 / 100:.2f} W",
    "temperature.gpu": lambda second, gpu: str(30 + (second + gpu) % 50),
    "clocks.current.sm [MHz]": lambda second, _: f"{1410 + second % 5 * 15} MHz",
    "clocks_event_reasons.active": lambda second, _: f"0x{second % 16:016x}",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Columns in order, GPUs, and ticks of a log."""

    columns: tuple[str, ...]
    gpus: int
    ticks: int

    def lines(self, *, units: bool = True) -> list[str]:
        """Return header and rows."""
        rows = [
            ", ".join(CELLS[name](tick, gpu) if units else _bare(CELLS[name](tick, gpu)) for name in self.columns)
            for tick in range(self.ticks)
            for gpu in range(self.gpus)
        ]
        return [", ".join(self.columns), *rows]

    def text(self, *, units: bool = True, end: str = "\n") -> str:
        """Return the log."""
        return "".join(line + end for line in self.lines(units=units))


def _bare(cell: str) -> str:
    number, _, unit = cell.partition(" ")
    return number if unit in {"%", "MiB", "W", "MHz"} else cell


@st.composite
def shapes(draw: st.DrawFn, fewest: int = 2) -> Shape:
    """Return logs of a few GPUs with any columns beside those that tell when and which GPU."""
    more = draw(st.lists(st.sampled_from(list(CELLS)[3:]), min_size=1, unique=True))
    columns = draw(st.permutations(["timestamp", "index", *draw(st.sampled_from([[], ["uuid"]])), *more]))
    return Shape(tuple(columns), draw(st.integers(1, 3)), draw(st.integers(fewest, 12)))


def series(recording: Recording) -> "pa.Table":
    """Return the series with its columns in one order."""
    return recording.series.select(sorted(recording.series.column_names))


def rows_of(recording: Recording) -> dict[tuple[str, object], dict[str, object]]:
    """Return the rows by device and time."""
    return {(row["device"], row["timestamp"]): row for row in recording.series.to_pylist()}


@BOUNDED
@given(shape=shapes(), share=st.floats(0.3, 1))
def test_a_cut_costs_one_line_at_most(tmp_path: Path, shape: Shape, share: float) -> None:
    """Of a log cut at any byte every whole line is read as it was; the cut one has no value that is not its own."""
    data = shape.text().encode()
    header = data.index(b"\n") + 1
    first = data.index(b"\n", header) + 1
    cut = data[: max(int(share * len(data)), first)]
    whole, part = rows_of(read_text(tmp_path, data)), rows_of(read_text(tmp_path, cut))
    assert len(part) >= cut.count(b"\n") - 1
    for key, row in part.items():
        assert all(value is None or value == whole[key][name] for name, value in row.items())


@BOUNDED
@given(shape=shapes(), share=st.floats(0, 1), length=st.one_of(st.integers(1, 100), st.sampled_from([4096, 9999])))
def test_a_nul_run_costs_two_lines_at_most(tmp_path: Path, shape: Shape, share: float, length: int) -> None:
    """A run of NUL bytes anywhere behind the header costs at most the lines it touches, and invents nothing."""
    data = shape.text().encode()
    header = data.index(b"\n") + 1
    place = header + int(share * (len(data) - header))
    damaged = read_text(tmp_path, data[:place] + b"\0" * length + data[place:])
    whole, part = rows_of(read_text(tmp_path, data)), rows_of(damaged)
    assert damaged.run.quality.accounted
    assert len(part) >= len(whole) - 2
    for key, row in part.items():
        assert all(value is None or value == whole[key][name] for name, value in row.items())


@BOUNDED
@given(
    shape=shapes(),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]),
    seed=st.integers(0, 2**32),
)
def test_form_changes_nothing(tmp_path: Path, shape: Shape, end: str, encoding: str, seed: int) -> None:
    """Encoding, line ends, the order of columns and units in cells make no difference."""
    columns = list(shape.columns)
    random.Random(seed).shuffle(columns)
    other = Shape(tuple(columns), shape.gpus, shape.ticks)
    plain = series(read_text(tmp_path, shape.text()))
    assert series(read_text(tmp_path, other.text(end=end).encode(encoding))).equals(plain)
    assert series(read_text(tmp_path, other.text(units=False, end=end))).equals(plain)


@BOUNDED
@given(shape=shapes(fewest=6), times=st.integers(1, 3), seam=st.booleans())
def test_a_log_appended_to_itself_is_a_duplicate(tmp_path: Path, shape: Shape, times: int, *, seam: bool) -> None:
    """Copies of a log behind it are rejected as duplicate segments, whether the log ended in a newline or not."""
    text = shape.text() if seam else shape.text()[:-1]
    plain, found = read_text(tmp_path, shape.text()), read_text(tmp_path, text * times + text)
    assert found.run.quality.accounted
    reasons = {entry.reason: entry.rows for entry in found.run.quality.rejected}
    rows = shape.gpus * shape.ticks
    assert reasons.pop("duplicate segment") >= times * (rows - 1) - (not seam)
    assert len(found.series) >= rows - (not seam)
    assert (found.run.started, found.run.quality.clock_steps) == (plain.run.started, ())


@BOUNDED
@given(shape=shapes())
def test_parquet_gives_back_what_was_read(tmp_path: Path, shape: Shape) -> None:
    """A run read from the store is the run that was read from its log."""
    path = tmp_path / "gpu.csv"
    path.write_text(shape.text())
    (inputs,) = find_runs(path)
    store = Store(tmp_path / "store")
    entry = store.write(Reading(inputs, ReadOptions(), Labels()), IMPORTER_VERSION)
    recording = Reading(inputs, ReadOptions(), Labels()).recording()
    assert store.read(entry).series.equals(recording.series)
    assert entry.run == recording.run
