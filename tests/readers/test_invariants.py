"""Changes to a log that change nothing of what is read."""

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.errors import GpureportError
from tests.readers import pairs
from tests.readers.pairs import assert_part, check_account, rows_of
from tests.support.logs import COMPRESSED, PACKED, log, read_text, stamp

BOUNDED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    columns: tuple[str, ...]
    gpus: int
    ticks: int

    def text(self, *, units: bool = True, end: str = "\n") -> str:
        cell = (lambda text: text) if units else _bare
        rows = [
            ", ".join(cell(CELLS[name](tick, gpu)) for name in self.columns)
            for tick in range(self.ticks)
            for gpu in range(self.gpus)
        ]
        return "".join(line + end for line in [", ".join(self.columns), *rows])


def _bare(cell: str) -> str:
    number, _, unit = cell.partition(" ")
    return number if unit in {"%", "MiB", "W", "MHz"} else cell


@st.composite
def shapes(draw: st.DrawFn, fewest: int = 2) -> Shape:
    more = draw(st.lists(st.sampled_from(list(CELLS)[3:]), min_size=1, unique=True))
    columns = draw(st.permutations(["timestamp", "index", *draw(st.sampled_from([[], ["uuid"]])), *more]))
    return Shape(tuple(columns), draw(st.integers(1, 3)), draw(st.integers(fewest, 12)))


@BOUNDED
@given(shape=shapes(), share=st.floats(0.3, 1))
def test_a_cut_costs_one_line_at_most(tmp_path: Path, shape: Shape, share: float) -> None:
    data = shape.text().encode()
    first = data.index(b"\n", data.index(b"\n") + 1) + 1
    cut = data[: max(int(share * len(data)), first)]
    part = read_text(tmp_path, cut)
    assert len(part.series) >= cut.count(b"\n") - 1
    assert_part(part, read_text(tmp_path, data))


@BOUNDED
@given(shape=shapes(), share=st.floats(0, 1), length=st.one_of(st.integers(1, 100), st.sampled_from([4096, 9999])))
def test_a_nul_run_costs_two_lines_at_most(tmp_path: Path, shape: Shape, share: float, length: int) -> None:
    data = shape.text().encode()
    header = data.index(b"\n") + 1
    place = header + int(share * (len(data) - header))
    whole, damaged = read_text(tmp_path, data), read_text(tmp_path, data[:place] + b"\0" * length + data[place:])
    assert len(damaged.series) >= len(whole.series) - 2
    assert_part(damaged, whole)


@BOUNDED
@given(
    shape=shapes(),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]),
    seed=st.integers(0, 2**32),
)
def test_form_changes_nothing(tmp_path: Path, shape: Shape, end: str, encoding: str, seed: int) -> None:
    columns = random.Random(seed).sample(shape.columns, len(shape.columns))
    other = Shape(tuple(columns), shape.gpus, shape.ticks)
    plain = rows_of(read_text(tmp_path, shape.text()))
    assert rows_of(read_text(tmp_path, other.text(end=end).encode(encoding))) == plain
    assert rows_of(read_text(tmp_path, other.text(units=False, end=end))) == plain


@BOUNDED
@given(shape=shapes(fewest=6), times=st.integers(1, 3), seam=st.booleans())
def test_a_log_appended_to_itself_is_a_duplicate(tmp_path: Path, shape: Shape, times: int, *, seam: bool) -> None:
    text = shape.text() if seam else shape.text()[:-1]
    plain, found = read_text(tmp_path, shape.text()), read_text(tmp_path, text * times + text)
    check_account(found)
    reasons = {entry.reason: entry.rows for entry in found.run.quality.rejected}
    rows = shape.gpus * shape.ticks
    assert reasons.pop("duplicate segment") >= times * (rows - 1) - (not seam)
    assert len(found.series) >= rows - (not seam)
    assert (found.run.started, found.run.quality.clock_steps) == (plain.run.started, ())


@BOUNDED
@given(shape=shapes(fewest=3), data=st.data())
def test_lines_that_are_no_rows_cost_no_row(tmp_path: Path, shape: Shape, data: st.DataObject) -> None:
    header, *rows = shape.text().splitlines()
    lines = list(rows)
    for _ in range(data.draw(st.integers(1, 5))):
        lines.insert(data.draw(st.integers(0, len(lines))), data.draw(st.sampled_from([header, "a word", "----", ""])))
    whole, found = read_text(tmp_path, shape.text()), read_text(tmp_path, "\n".join([header, *lines, ""]))
    check_account(found)
    assert rows_of(found) == rows_of(whole)


Change = Callable[[bytes], bytes]
CHANGES: dict[str, Change] = {
    **{name: PACKED[name] for name in COMPRESSED},
    "two members": lambda text: PACKED["gzip"](text[:100]) + PACKED["gzip"](text[100:]),
    "CRLF": lambda text: text.replace(b"\n", b"\r\n"),
    "CR": lambda text: text.replace(b"\n", b"\r"),
    "mark": lambda text: b"\xef\xbb\xbf" + text,
    "UTF-16": lambda text: text.decode().encode("utf-16"),
    "UTF-16 of Windows": lambda text: text.decode().replace("\n", "\r\n").encode("utf-16"),
}
"""What leaves the text as it is."""
SENSITIVE = ("accounting", "training", "mapped", "decoding")
"""Sources whose pairs hold other files, or are written down in an own way."""


def plain_pairs() -> list[Path]:
    found = [pair for pair in pairs.list_pairs() if pair.is_file() and pair.parent.name not in SENSITIVE]
    contents = [(pair, pair.read_bytes()) for pair in found]
    return [pair for pair, text in contents if text.isascii() and text[-1:] == b"\n" and not {*text} & {0, 13, 27}]


def described(content: bytes, stated: dict[str, object], folder: Path) -> object:
    folder.mkdir()
    pair = folder / "log.txt"
    pair.write_bytes(content)
    (folder / "log.json").write_text(json.dumps(stated), encoding="utf-8")
    (folder / "read").mkdir()
    return json.loads(pairs.describe(pair, folder / "read"))


@pytest.mark.parametrize("source", sorted({pair.parent.name for pair in plain_pairs()}))
def test_how_a_log_is_written_down_changes_nothing(source: str, tmp_path: Path) -> None:
    for pair in (pair for pair in plain_pairs() if pair.parent.name == source):
        expected = json.loads(pairs.expectation(pair).read_text(encoding="utf-8"))
        chance = int(hashlib.sha256(pair.name.encode()).hexdigest(), 16)
        name = list(CHANGES)[chance % len(CHANGES)]
        found = described(CHANGES[name](pair.read_bytes()), expected, tmp_path / pair.stem)
        assert found == expected, f"{pair.name} as {name}"


@pytest.mark.parametrize("packed", COMPRESSED)
def test_of_a_compressed_log_that_is_cut_the_beginning_is_read(packed: str, tmp_path: Path) -> None:
    text = log(3000).encode()
    half = text.index(b"\n", len(text) // 2) + 1
    whole = read_text(tmp_path, text).series.column("timestamp").to_pylist()
    content = PACKED[packed](text[:half]) + PACKED[packed](text[half:])
    for share in (0.05, 0.3, 0.6, 0.9, 0.999):
        # some methods give nothing of a block that is not whole
        at = int(share * len(content))
        if share > 0.5 or packed == "gzip":
            recording = read_text(tmp_path, content[:at])
            pairs.check_account(recording)
            assert recording.run.quality.notes, share
            assert recording.series.column("timestamp").to_pylist() == whole[: len(recording.series)], share
            assert len(recording.series) > 1400 or share < 0.5, share
        try:
            pairs.check_account(read_text(tmp_path, content[:at] + b"rubbish" + content[at + 7 :]))
        except GpureportError:
            assert share < 0.5


def test_rubbish_behind_a_compressed_log_is_left_out(tmp_path: Path) -> None:
    recording = read_text(tmp_path, PACKED["gzip"](log(30).encode()) + b"rubbish")
    assert (len(recording.series), len(recording.run.quality.notes)) == (30, 1)


def test_a_line_without_end_is_shortened(tmp_path: Path) -> None:
    header, *rows = log(9).splitlines()
    for length, kept in ((3_000_000, 8), (500_000, 9)):
        long = [*rows[:4], rows[4].replace("NVIDIA L4", "N" * length), *rows[5:]]
        recording = read_text(tmp_path, "\n".join([header, *long, ""]))
        pairs.check_account(recording)
        assert len(recording.series) == kept, length
