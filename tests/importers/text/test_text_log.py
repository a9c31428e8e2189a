"""Rows that a form reads become the series, and every line is accounted for."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from gpureport.errors import SourceError
from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.text.text_log import Chunk, FormExtraction, Record, columns_from_records, make_chunk


class Pairs:
    """Lines of `index time utilisation`, or without the time."""

    name: ClassVar[str] = "pairs"
    zone: str | None = None
    averaged = False

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield a chunk a piece."""
        for piece in log:
            records, odd = [], []
            for number, line in enumerate(piece.data.decode().splitlines(), piece.first_line):
                index, *time, used = line.split()
                if index == "#":
                    odd.append(NonDataLine(number, LineKind.HEADER, "", line))
                    continue
                values: dict[str, float | bool | str] = {"index": index, "gpu_utilization_ratio": float(used)}
                records.append(Record(number=number, time=int(time[0]) if time else None, values=values))
            yield make_chunk(records, lines=len(records) + len(odd), other_lines=odd)


def read(path: Path, text: str, options: ReadOptions | None = None) -> tuple[FormExtraction, list[dict[str, object]]]:
    """Return the extraction after its last batch, and its rows."""
    path.write_text(text)
    extraction = FormExtraction(RawFile(path), options or ReadOptions(), Pairs)
    return extraction, [row for batch in extraction.batches() for row in batch.to_pylist()]


def test_rows_go_to_their_devices(tmp_path: Path) -> None:
    """Each row is one of the GPU its line names."""
    extraction, rows = read(tmp_path / "log", "# header\n0 1000000 0.5\n1 1000000 0.25\n0 2000000 1\n")
    assert [(row["device"], row["gpu_utilization_ratio"]) for row in rows] == [
        ("gpu:0", 0.5),
        ("gpu:0", 1.0),
        ("gpu:1", 0.25),
    ]
    quality = extraction.outcome().quality
    assert (quality.accounted, quality.rows_kept, quality.headers) == (True, 3, 1)


def test_rows_without_time_need_an_interval(tmp_path: Path) -> None:
    """Counted times are flagged; without an interval there are none."""
    with pytest.raises(SourceError, match="have no time"):
        read(tmp_path / "log", "0 0.5\n0 0.25\n")
    extraction, _ = read(tmp_path / "log", "0 0.5\n0 0.25\n", ReadOptions(interval=2.0))
    assert extraction.outcome().quality.synthetic_time
    assert extraction.outcome().span == (0, 2_000_000)


def test_gpus_that_were_not_asked_for_are_counted(tmp_path: Path) -> None:
    """Rows of other GPUs are no fault of the log."""
    extraction, rows = read(tmp_path / "log", "0 1000000 0.5\n1 1000000 0.25\n", ReadOptions(gpus=(1,)))
    assert [row["device"] for row in rows] == ["gpu:1"]
    assert [(entry.reason, entry.rows) for entry in extraction.outcome().quality.rejected] == [("GPU not selected", 1)]


def test_a_number_larger_than_its_column_is_no_reading() -> None:
    """A sum of two counters of nvidia-smi -q can leave the range of a counter."""
    records = [Record(number=1, time=0, values={"gpu_ecc_corrected_total": count}) for count in (7, 2**63)]
    column = columns_from_records(records)["gpu_ecc_corrected_total"]
    assert column.valid.tolist() == [True, False]
