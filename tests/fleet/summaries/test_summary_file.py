"""The file of summaries: written run by run, whole again after damage, the same bytes for the same summaries."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from gpureport.fleet.gpu_summary import GpuHealth, GpuSummary, HealthCheck
from gpureport.fleet.summaries.summary_file import SummaryFile, dump_summaries, load_summaries
from tests.fleet.gpu_summaries import make_finding, make_gpu

FULL = make_gpu(
    "a",
    user="ann",
    params=(("lr", "0.1"),),
    findings=(make_finding("idle_gap", None, "prefetch", cause="data"),),
    not_judged=("io_bound",),
    health=GpuHealth(ecc_corrected=3, gpu_lost=HealthCheck.CLEAR, heat_slowed_seconds=0.0),
    work=10.0,
)
FAILED = GpuSummary(key="", run_id="b", run_name="b", error="damaged; ingest the run again")


def test_every_field_comes_back() -> None:
    """Null stays null and 0 stays 0."""
    assert load_summaries(dump_summaries([FULL, FAILED])) == [FULL, FAILED]


def test_summaries_of_an_earlier_version_lack_a_column() -> None:
    """What it held is null, and they are not called damaged."""
    content = parquet.ParquetFile(pa.BufferReader(dump_summaries([FULL]))).read().drop_columns(["source"])
    sink = pa.BufferOutputStream()
    parquet.write_table(content, sink, write_page_checksum=True)
    assert load_summaries(sink.getvalue().to_pybytes()) == [FULL]


def test_a_killed_process_keeps_what_it_had_done(tmp_path: Path) -> None:
    """Each run is there as soon as it is added; the table takes them up, and the small files go."""
    file = SummaryFile(tmp_path)
    file.add([FULL])
    file.add([FAILED])
    later = SummaryFile(tmp_path)
    known = later.load()
    assert known == [FULL, FAILED]
    later.replace(known)
    assert list((tmp_path / "fleet").rglob("*.parquet")) == [later.path]
    assert SummaryFile(tmp_path).load() == [FAILED, FULL]


def test_the_order_of_adding_changes_no_byte(tmp_path: Path) -> None:
    """The table is sorted by time, run and device."""
    gpus = [make_gpu("a", device=f"gpu:{index}") for index in range(12)] + [make_gpu("b")]
    for folder, order in ((tmp_path / "one", gpus), (tmp_path / "other", gpus[::-1])):
        SummaryFile(folder).replace(order)
    one, other = ((tmp_path / name / "fleet" / "summaries.parquet").read_bytes() for name in ("one", "other"))
    assert one == other


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1 torn PAR1"])
def test_a_damaged_file_is_passed_over_and_named(tmp_path: Path, damage: bytes) -> None:
    """What else is there is kept."""
    file = SummaryFile(tmp_path)
    file.replace([FAILED])
    file.path.write_bytes(damage)
    SummaryFile(tmp_path).add([FULL])
    later = SummaryFile(tmp_path)
    assert later.load() == [FULL]
    assert later.damaged == [file.path]


def test_a_flipped_bit_is_damage(tmp_path: Path) -> None:
    """No bit of the data can change unseen."""
    file = SummaryFile(tmp_path)
    file.replace([FULL])
    content = bytearray(file.path.read_bytes())
    content[100] ^= 1
    file.path.write_bytes(bytes(content))
    assert SummaryFile(tmp_path).load() == []


def test_a_file_of_another_layout_is_not_read(tmp_path: Path) -> None:
    """Its runs are summarised again."""
    parquet.write_table(pa.table({"key": ["a"]}), tmp_path / "other.parquet")
    with pytest.raises(ValueError, match="format 0 is not 1"):
        load_summaries((tmp_path / "other.parquet").read_bytes())
