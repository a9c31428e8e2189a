"""One log may hold several forms: each block is read by its own, and every other line is accounted for."""

from itertools import pairwise
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import ReadOptions
from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.logs.nvidia_smi.forms import FORMS
from gpureport.importers.logs.nvidia_smi.forms.blocks import Blocks
from gpureport.importers.logs.nvidia_smi.forms.drawn_table.drawn_tables import LACKS, LACKS_BESIDE
from gpureport.importers.logs.nvidia_smi.forms.extraction import MixedFormsExtraction
from gpureport.importers.logs.nvidia_smi.importer import NvidiaSmi
from gpureport.importers.logs.nvidia_smi.query.extraction import QueryGpuExtraction
from tests.importers.accounts import START, column, kept, lines, rejected, seconds
from tests.importers.logs.nvidia_smi.forms.monitor_logs import clock, dmon, process_list
from tests.importers.logs.nvidia_smi.forms.outputs import asctime, gpu, loop, query
from tests.importers.written_logs import log, read, read_text, stamp

PROSE = ["epoch 1: loss 0.71, 3.2 s", "", "Saving to /tmp/run", "[rank0] done"]
RULE = "#" * 80


def section(command: str, text: str) -> list[str]:
    """Return what a script puts above the output of a command, and the output."""
    return [RULE, f"# $ nvidia-smi {command}", RULE, *text.splitlines(), ""]


def test_each_block_goes_to_its_form(tmp_path: Path) -> None:
    """The rows of monitors, lists and queries stand in one series, in the order of time."""
    text = lines(
        *PROSE,
        *section("dmon -o DT", dmon(5)),
        *section("--query-gpu", log(15).replace("09:00:0", "09:01:0").replace("09:00:1", "09:01:1")),
        *section("pmon -o DT", process_list(3, start=90)),
        *section("-L", "GPU 0: NVIDIA L4 (UUID: GPU-0)"),
    )
    recording = read_text(tmp_path, text)
    assert kept(recording) == 5 + 15 + 3
    assert recording.run.quality.noise == len(PROSE) - 1 + 4 * 3 + 1
    assert rejected(recording) == []
    assert recording.run.quality.headers == 2 + 1 + 2
    assert seconds(recording)[:6] == [0, 1, 2, 3, 4, 60]
    assert column(recording, "gpu_processes")[-1] == 2
    assert recording.run.gpus[0].model == "NVIDIA L4"


def test_what_tables_lack_other_rows_may_tell(tmp_path: Path) -> None:
    """Throttling is said to be beyond judging only where no row of the log tells of it."""
    tables = loop(5, gpus=1)
    assert LACKS in read_text(tmp_path, tables).run.quality.notes
    notes = read_text(tmp_path, tables + query([gpu(0)], asctime(30))).run.quality.notes
    assert LACKS_BESIDE in notes
    assert LACKS not in notes


def test_blocks_may_stand_right_below_each_other(tmp_path: Path) -> None:
    """A heading ends the block before, with no line between."""
    later = dmon(3).replace(" 09:00:0", " 09:05:0")
    recording = read_text(tmp_path, dmon(3) + log(20).replace("09:00:", "09:01:") + later)
    assert kept(recording) == 26
    assert recording.run.quality.headers == 5


def test_prose_below_a_block_is_no_row_of_it(tmp_path: Path) -> None:
    """What a job prints between rows is rejected by the form, and costs no row."""
    written = dmon(4).splitlines()
    recording = read_text(tmp_path, lines(*written[:4], *PROSE, *written[4:]))
    assert kept(recording) == 4
    assert rejected(recording) == [("wrong number of cells", 3, 5)]


def test_messages_of_the_driver_have_a_time(tmp_path: Path) -> None:
    """What the driver says between rows, or above them, is an event at the time of the row before."""
    lost, none = "Unable to determine the device handle for GPU0000:0B:00.0: GPU is lost", "No devices were found"
    written = dmon(6).splitlines()
    recording = read_text(tmp_path, lines(none, *written[:4], lost, *written[4:]), ReadOptions(tz="UTC"))
    assert kept(recording) == 6
    assert recording.run.quality.events == 2
    assert [(event.kind, (event.at or 0) - START) for event in recording.run.quality.log_events] == [
        ("no_devices", 0),
        ("gpu_lost", 1_000_000),
    ]


def test_rows_above_any_heading_are_rejected(tmp_path: Path) -> None:
    """Rows whose headings were cut off are no prose."""
    rows = dmon(50).splitlines()
    recording = read_text(tmp_path, lines("job 7", *rows[40:]))
    assert kept(recording) == 6
    assert rejected(recording) == [("before any header", 6, 2)]
    assert recording.run.quality.noise == 1


def test_rows_without_time_beside_rows_with_time(tmp_path: Path) -> None:
    """They are left out; with --interval those there are more of are read."""
    few, many = dmon(2), dmon(30, stamped=False)
    recording = read_text(tmp_path, few + many)
    assert kept(recording) == 2
    assert rejected(recording) == [("no time stamp", 30, 7)]
    assert "30 rows have no time stamp and were left out: --interval reads them instead." in recording.run.quality.notes
    recording = read_text(tmp_path, few + many, ReadOptions(interval=1))
    assert kept(recording) == 30
    assert rejected(recording) == [("no time stamp", 2, 3)]
    recording = read_text(tmp_path, dmon(30) + dmon(2, stamped=False), ReadOptions(interval=1))
    assert kept(recording) == 30
    assert recording.run.quality.notes == ("The log has time stamps: --interval was not used.",)


def test_times_without_a_date_do_not_mix_with_dates(tmp_path: Path) -> None:
    """Rows of -o T have no place among rows with dates."""
    undated = dmon(3).replace("#Date", "#").replace("20260314", "").replace("YYYYMMDD", "")
    recording = read_text(tmp_path, dmon(3) + undated)
    assert kept(recording) == 3
    assert rejected(recording) == [("no time stamp", 3, 8)]


def test_gpus_are_matched_over_forms(tmp_path: Path) -> None:
    """What one form calls by index and another by uuid is one GPU, with a note where no row has both."""
    header = "timestamp, uuid, utilization.gpu [%]"
    rows = [f"{stamp(60 + s)}, GPU-{'ab'[gpu]}, 5{gpu} %" for s in range(5) for gpu in range(2)]
    recording = read_text(tmp_path, dmon(5, gpus=2) + lines(header, *rows))
    assert [(gpu.id, gpu.uuid) for gpu in recording.run.gpus] == [("gpu:0", "GPU-a"), ("gpu:1", "GPU-b")]
    assert column(recording, "gpu_utilization_ratio", "gpu:1")[-1] == 0.51
    assert any("no row by both" in note for note in recording.run.quality.notes)


def test_a_bus_id_links_index_and_uuid(tmp_path: Path) -> None:
    """A name that two forms share tells which GPU is meant, whatever order they are listed in."""
    one = lines("timestamp, index, pci.bus_id, utilization.gpu [%]", *(f"{stamp(s)}, {s}, b{s}, 5 %" for s in range(2)))
    rows = [f"{stamp(9)}, u{gpu}, b{gpu}, 1{gpu} %" for gpu in (1, 0)]
    two = lines("timestamp, uuid, pci.bus_id, utilization.gpu [%]", *rows)
    recording = read_text(tmp_path, one + two + dmon(3).replace(" 09:00:0", " 09:05:0"))
    assert [(gpu.index, gpu.bus_id, gpu.uuid) for gpu in recording.run.gpus] == [(0, "b0", "u0"), (1, "b1", "u1")]
    assert recording.run.quality.notes == ()


def extraction(folder: Path, text: str) -> type:
    """Return what reads a log."""
    path = folder / "log"
    path.write_text(text)
    return type(NvidiaSmi().extract(RawFile(path), ReadOptions()))


def test_a_table_of_queries_keeps_its_own_extraction(tmp_path: Path) -> None:
    """A CSV from end to end, prose and messages in it included, is not cut into blocks."""
    assert extraction(tmp_path, log(20)) is QueryGpuExtraction
    assert extraction(tmp_path, lines("job 7", *PROSE) + log(20)) is QueryGpuExtraction
    assert extraction(tmp_path, log(20) + "# gpu  sm\n") is QueryGpuExtraction
    assert extraction(tmp_path, dmon(2)) is MixedFormsExtraction
    assert extraction(tmp_path, log(20) + dmon(2)) is MixedFormsExtraction
    assert extraction(tmp_path, "# gpu  sm\n") is MixedFormsExtraction


def test_headings_without_a_row_are_refused(tmp_path: Path) -> None:
    """A monitor that was stopped at once left nothing to read."""
    with pytest.raises(SourceError, match="none of its 2 lines"):
        read_text(tmp_path, lines(*dmon(1).splitlines()[:2]))


def test_a_log_of_the_daemon_is_unsupported(tmp_path: Path) -> None:
    """The message says what prints it."""
    path = tmp_path / "nvstats-20260314"
    path.write_bytes(b"\x01\x02\xff\xfe\x00nvstats" * 40)
    with pytest.raises(SourceError, match="unsupported") as raised:
        read(path)
    assert "nvidia-smi replay -f nvstats-20260314" in raised.value.hint


@pytest.mark.parametrize("size", [1, 100, 1000])
def test_pieces_of_any_size_are_cut_alike(size: int) -> None:
    """Where a piece of the log ends changes nothing of its blocks."""
    text = lines(*PROSE, *section("dmon", dmon(30)), *section("pmon", process_list(5)), "0 1 2", *PROSE)

    def cut(bounds: list[int]) -> dict[int, tuple[object, bytes, int]]:
        found: dict[int, tuple[object, bytes, int]] = {}
        blocks, data = Blocks(), text.encode()
        for start, end in pairwise(bounds):
            part = data[start:end]
            last = end == len(data)
            piece = Piece(part, data[:start].count(b"\n") + 1, last=last, lines=part.count(b"\n"))
            for each in blocks.parts(piece):
                assert each.piece.lines == each.piece.data.count(b"\n")
                before = found.get(each.block, (each.form, b"", each.piece.first_line))
                found[each.block] = (each.form, before[1] + each.piece.data, before[2])
        return found

    ends = [place + 1 for place, letter in enumerate(text) if letter == "\n"]
    bounds, last = [0], 0
    for end in ends:
        if end - last >= size or end == ends[-1]:
            bounds.append(end)
            last = end
    whole = cut([0, len(text)])
    assert b"".join(data for _, data, _ in whole.values()) == text.encode()
    assert {number: part for number, part in cut(bounds).items() if part[1]} == whole


def test_prose_opens_no_block() -> None:
    """No form takes a sentence, a number or a path for its own."""
    prose = [*PROSE, "gpu", "pid", "name, index", "The GPU is lost.", "0.5, 0.7, 12", f"{' '.join(clock(0))} starting"]
    assert [(line, form) for line in prose for form in FORMS if form.opens(line)] == []
