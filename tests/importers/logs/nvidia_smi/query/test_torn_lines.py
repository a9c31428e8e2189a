"""Torn lines that have the right number of cells."""

from pathlib import Path

import numpy as np
import pytest

from gpureport.columns import IntArray
from gpureport.importers.devices.column_values import Values
from gpureport.importers.logs.nvidia_smi.query.torn_lines import TornRows
from tests.importers.written_logs import HEADER, read_text, row

UUID = "GPU-8b2f1f0a-1c2d-4e3f-8a9b-0123456789ab"


def every(length: int) -> IntArray:
    """Return stamps a second apart."""
    return np.arange(length, dtype=np.int64) * 1_000_000


def texts(*values: str) -> Values:
    """Return a column of texts."""
    distinct = sorted(set(values))
    codes = np.array([distinct.index(value) for value in values], dtype=np.int64)
    return Values(codes, np.ones(len(values), dtype=np.bool_), distinct)


def test_a_name_of_two_halves_is_torn(tmp_path: Path) -> None:
    """The beginning of a name and the end of a name run together are no GPU of their own."""
    rows = [row(second).replace("L4", "A100-SXM4-80GB") for second in range(60)]
    rows[30] = rows[30].replace("A100-SXM4-80GB", "A100IDIA A100-SXM4-80GB")
    run = read_text(tmp_path, "\n".join([HEADER.replace("index, ", ""), *(_anonymous(line) for line in rows), ""])).run
    assert [(entry.reason, entry.rows, entry.first_line) for entry in run.quality.rejected] == [("torn line", 1, 32)]
    assert [device.model for device in run.devices] == ["NVIDIA A100-SXM4-80GB"]
    assert run.quality.accounted


def _anonymous(line: str) -> str:
    cells = line.split(", ")
    return ", ".join([cells[0], *cells[2:]])


@pytest.mark.parametrize(
    ("name", "common", "rare", "expected"),
    [
        ("model", "NVIDIA A100-SXM4-80GB", "NVIDIA A100IDIA A100-SXM4-80GB", True),
        ("model", "NVIDIA A100-SXM4-80GB", "NVIDIA A1", True),
        ("model", "NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB", False),
        ("model", "NVIDIA A100-SXM4-80GB", "Tesla T4", False),
        ("uuid", UUID, "GPU-8b2f1f0a-1GPU-8b2f1f0a-1c2d-4e3f-8a9b-0123456789ab", True),
        ("uuid", UUID, UUID.replace("8b", "9c"), False),
        ("uuid", "GPU-a", "GPU-b", False),
        ("bus_id", "00000000:0B:00.0", "00000000:000000:0B:00.0", True),
        ("bus_id", "00000000:0B:00.0", "00000000:0C:00.0", False),
    ],
)
def test_a_rare_text_is_torn_when_the_driver_cannot_have_written_it(
    name: str, common: str, rare: str, *, expected: bool
) -> None:
    """A second GPU that appears late is a GPU; a text that fits no grammar, or is made of another, is damage."""
    torn = TornRows().rows({name: texts(*[common] * 30, rare, *[common] * 5)}, every(36))
    assert torn.tolist() == [False] * 30 + [expected] + [False] * 5


def test_what_is_common_is_never_torn() -> None:
    """A text on many rows is a fact, whatever it looks like."""
    assert not TornRows().rows({"model": texts(*["NVIDIA L40"] * 30, *["NVIDIA L4"] * 30)}, every(60)).any()


def test_a_name_torn_in_a_later_section_is_found() -> None:
    """What is common is remembered from section to section."""
    torn = TornRows()
    torn.rows({"model": texts(*["NVIDIA L40S"] * 30)}, every(30))
    assert torn.rows({"model": texts("NVIDIA L40S", "NVIDIDIA L40S")}, every(2)).tolist() == [False, True]


def test_memory_in_all_does_not_change() -> None:
    """A row whose memory in all differs from that of all others of its GPU is torn; another GPU's may differ."""
    gpus = texts(*["0", "1"] * 30)
    sizes = np.array([24.0, 80.0] * 30)
    sizes[40] = 2.0
    data = {"index": gpus, "gpu_memory_total_bytes": Values(sizes, np.ones(60, dtype=np.bool_))}
    torn = TornRows().rows(data, every(60))
    assert np.flatnonzero(torn).tolist() == [40]


def test_a_second_gpu_of_a_kin_model_is_no_damage(tmp_path: Path) -> None:
    """Three rows of an RTX 3080 beside an RTX 3080 Ti are a GPU, for no other row names its index."""
    first = [row(second).replace("L4", "RTX 3080 Ti") for second in range(60)]
    second = [row(second, 1).replace("L4", "RTX 3080") for second in range(60, 63)]
    run = read_text(tmp_path, "\n".join([HEADER, *first, *second, ""])).run
    assert run.quality.rejected == ()
    assert [device.model for device in run.devices] == ["NVIDIA RTX 3080 Ti", "NVIDIA RTX 3080"]


@pytest.mark.parametrize("index", ["0", None])
def test_half_a_model_on_a_row_of_a_known_gpu_is_torn(index: str | None) -> None:
    """The index says which GPU it is, and the other rows what GPU that is."""
    data = {"model": texts(*["RTX 3080 Ti"] * 30, "RTX 3080", *["RTX 3080 Ti"] * 5)}
    torn = TornRows().rows(data | ({"index": texts(*[index] * 36)} if index else {}), every(36))
    assert np.flatnonzero(torn).tolist() == [30]


@pytest.mark.parametrize(
    ("odd", "gap", "torn"),
    [
        ([57, 58, 59], 0, []),
        ([57, 58, 59], 100, []),
        ([0, 1], 0, []),
        ([59], 100, []),
        ([59], 0, [59]),
        ([30, 31, 32], 0, [30, 31, 32]),
        ([30, 31], 100, []),
    ],
)
@pytest.mark.parametrize("name", ["gpu_memory_total_bytes", "model"])
def test_a_change_that_lasts_is_no_damage(name: str, odd: list[int], gap: int, torn: list[int]) -> None:
    """At the end of a log or after a gap another memory in all, or another model, is a fact; between rows it is not."""
    times = every(60)
    times[odd[0] :] += gap * 1_000_000
    strange = np.isin(np.arange(60), odd)
    data = {"index": texts(*["0"] * 60), "gpu_memory_total_bytes": Values(np.where(strange, 23.0, 24.0), times >= 0)}
    if name == "model":
        data = {"index": data["index"], "model": texts(*np.where(strange, "RTX 3080", "RTX 3080 Ti").tolist())}
    assert np.flatnonzero(TornRows().rows(data, times)).tolist() == torn


def test_a_torn_uuid_in_a_short_log_is_no_gpu(tmp_path: Path) -> None:
    """One uuid that fits the grammar is enough to tell that another does not."""
    rows = [row(second).replace(", 0, ", f", {UUID}, ") for second in range(15)]
    rows[7] = rows[7].replace(UUID, UUID[:17] + UUID[:9])
    run = read_text(tmp_path, "\n".join([HEADER.replace("index", "uuid"), *rows, ""])).run
    assert [(entry.reason, entry.rows) for entry in run.quality.rejected] == [("torn line", 1)]
    assert [device.uuid for device in run.devices] == [UUID]
