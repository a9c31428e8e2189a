"""The XML of `nvidia-smi -q -x` is read element by element, whatever became of the documents."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.errors import SourceError
from gpureport.importers import ReadOptions
from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.logs.nvidia_smi.forms.full_query.q_xml import QueryXml
from gpureport.importers.text.text_log import FormExtraction
from gpureport.testing import Confidence, analyze
from tests.importers.accounts import START, absent, column, percents, rejected, seconds
from tests.importers.logs.nvidia_smi.forms.outputs import Reading, asctime, document, document_loop, gpu, query
from tests.importers.logs.nvidia_smi.forms.snapshot_logs import read, read_cut_log

EXPECTED = {
    "gpu_performance_state": 0,
    "gpu_fan_ratio": 0.3,
    "gpu_utilization_ratio": 0.97,
    "gpu_memory_controller_ratio": 0.12,
    "gpu_memory_total_bytes": 23034 * 2**20,
    "gpu_memory_used_bytes": 2**30,
    "gpu_memory_free_bytes": 20000 * 2**20,
    "gpu_bar1_used_bytes": 2**20,
    "gpu_temperature_celsius": 41,
    "gpu_memory_temperature_celsius": None,
    "gpu_power_watts": 61.849998,
    "gpu_power_limit_watts": 72,
    "gpu_power_limit_requested_watts": 72,
    "gpu_graphics_clock_hertz": 1980e6,
    "gpu_sm_clock_hertz": 1965e6,
    "gpu_memory_clock_hertz": 6251e6,
    "gpu_graphics_clock_max_hertz": 2040e6,
    "gpu_sm_clock_max_hertz": 2040e6,
    "gpu_memory_clock_max_hertz": 6251e6,
    "pcie_link_generation": 4,
    "pcie_link_generation_max": 4,
    "pcie_link_width": 8,
    "pcie_link_width_max": 16,
    "pcie_transmit_bytes_per_second": 439e3,
    "pcie_receive_bytes_per_second": 292e3,
    "gpu_ecc_corrected_total": 4,
    "gpu_ecc_uncorrected_total": 2,
    "clock_event_gpu_idle": False,
    "clock_event_sw_power_cap": True,
    "clock_event_display_clock_setting": False,
}


LOST = "GPU is lost"


def _lost(text: str, gpu_lost: str) -> str:
    """Return a document, or a text, of two GPUs in which the second one says that it is lost."""
    head, first, second = re.split(r"(?=\t<gpu id|^GPU 0)", text, flags=re.MULTILINE)
    if gpu_lost == "body":
        return head + first + re.sub(r'(<gpu id="[^"]*">).*</gpu>', rf"\1{LOST}</gpu>", second, flags=re.DOTALL)
    return head + first + re.sub(r">[^<\n]+</|(?<= : )[^\n]+$", _in_cells, second, flags=re.MULTILINE)


def _in_cells(match: re.Match[str]) -> str:
    return f">{LOST}</" if match[0].startswith(">") else LOST


@pytest.mark.parametrize(
    ("write", "gpu_lost"), [(document, "body"), (document, "cells"), (query, "cells")], ids=["body", "cells", "text"]
)
def test_a_lost_gpu_is_found_with_its_moment(
    tmp_path: Path, write: Callable[[Sequence[Reading], str], str], gpu_lost: str
) -> None:
    """A GPU of which nothing but its loss is said stays the GPU that it was, and no reading is made of the words."""
    shown = [gpu(0), gpu(1)]
    snapshots = [write(shown, asctime(5 * place)) for place in range(12)]
    text = "".join([*snapshots[:8], *(_lost(each, gpu_lost) for each in snapshots[8:])])
    recording = read(tmp_path, text)
    assert [(device.id, device.model) for device in recording.run.devices] == [
        ("gpu:0", "NVIDIA L4"),
        ("gpu:1", "NVIDIA L4"),
    ]
    assert rejected(recording) == []
    assert percents(recording, "gpu:1") == [97] * 8 + [None] * 4
    found = [finding for finding in analyze(recording).findings if finding.kind == "gpu_lost"]
    assert [(finding.devices, finding.confidence, finding.cause) for finding in found] == [
        (("gpu:1",), Confidence.HIGH, "lost")
    ]
    assert [((each.start - START) / 1e6, (each.end - START) / 1e6) for each in found[0].intervals] == [(40, 55)]


@pytest.mark.parametrize("schema", [10, 11, 12, 13])
def test_every_value(tmp_path: Path, schema: int) -> None:
    """Each value is the one at its own path, in every version of the document type."""
    recording = read(tmp_path, document([gpu(0), gpu(1)], schema=schema))
    assert {name: column(recording, name) for name in EXPECTED} == {name: [value] for name, value in EXPECTED.items()}
    one, other = recording.run.devices
    assert (one.uuid, one.bus_id, one.model, one.driver) == (
        *("GPU-00000000-0000-0000-0000-000000000000", "00000000:31:00.0", "NVIDIA L4", "590.48.01"),
    )
    assert (other.id, other.bus_id) == ("gpu:1", "00000000:32:00.0")
    assert seconds(recording) == [0]


def test_power_readings_by_version(tmp_path: Path) -> None:
    """The average is known as one since drivers write it apart from the instant reading."""
    assert read(tmp_path, document([gpu(0, name="?")], schema=13)).run.devices[0].power_window == "1 s"
    assert read(tmp_path, document([gpu(0, name="?")], schema=11)).run.devices[0].power_window == "unknown"
    assert column(read(tmp_path, document()), "gpu_power_instant_watts") == [61.619999]


def test_a_loop_is_a_series(tmp_path: Path) -> None:
    """Documents that follow one another are a series, with a newline between them and without."""
    text = document_loop(5, gpus=3, every=10)
    recording = read(tmp_path, text)
    assert (len(recording.series), seconds(recording, "gpu:2")) == (15, [0, 10, 20, 30, 40])
    assert percents(recording, "gpu:1") == [1, 8, 15, 22, 29]
    assert (recording.run.quality.headers, recording.run.quality.noise) == (5, 0)
    assert recording.run.quality.lines == sum(bool(line.strip()) for line in text.splitlines())
    assert read(tmp_path, text.replace("</nvidia_smi_log>\n", "</nvidia_smi_log>")).series.equals(recording.series)
    assert read(tmp_path, text.replace("\n", "\r\n")).series.equals(recording.series)
    assert read(tmp_path, text.replace("\n", "").replace("\t", "")).series.equals(recording.series)


def test_errors_in_place_of_values(tmp_path: Path) -> None:
    """The body of an element may be an error: no value, and the reason."""
    text = document().replace(">97 %<", ">GPU is lost<").replace(">1965 MHz<", "> Unknown Error <")
    recording = read(tmp_path, text.replace("<dram_correctable>3<", "<dram_correctable>GPU is lost<"))
    assert (percents(recording), column(recording, "gpu_sm_clock_hertz")) == ([None], [None])
    assert absent(recording)[:3] == [
        ("clocks.current.sm", "Unknown Error", 1),
        ("ecc.errors.corrected.volatile.total", "GPU is lost", 1),
        ("mig.mode.current", "N/A", 1),
    ]
    assert ("utilization.gpu", "GPU is lost", 1) in absent(recording)


def test_instances_are_no_gpus(tmp_path: Path) -> None:
    """What a MIG instance uses is none of the figures of its GPU."""
    inside = "<mig_device><fb_memory_usage><used>7 MiB</used></fb_memory_usage></mig_device>"
    text = document([gpu(0, mig="Enabled", busy="N/A")]).replace(">None<", f">{inside}<")
    recording = read(tmp_path, text)
    assert (column(recording, "gpu_memory_used_bytes"), recording.run.devices[0].mig) == ([2**30], True)


def test_a_cut_document_keeps_its_whole_gpus(tmp_path: Path) -> None:
    """Of the last document what is complete counts; an element that is cut is rejected."""
    text = document_loop(2, gpus=3)
    recording = read(tmp_path, text[: text.rindex("<temperature>")])
    assert [len(recording.rows_of(f"gpu:{index}")) for index in range(3)] == [2, 2, 1]
    assert [reason for reason, *_ in rejected(recording)] == ["cut last line"]


def test_a_document_begun_inside_another(tmp_path: Path) -> None:
    """A log that was killed and appended to loses the element that was cut."""
    text = document([gpu(0), gpu(1)])
    recording = read(tmp_path, text[: text.rindex("<clocks>")] + document([gpu(0), gpu(1)], asctime(5)))
    assert (seconds(recording), seconds(recording, "gpu:1")) == ([0, 5], [5])
    assert [reason for reason, *_ in rejected(recording)] == ["torn line"]


@pytest.mark.parametrize(
    "damage",
    [
        ("<sm_clock>", "<sm_clok>"),
        ("<sm_clock>1965 MHz", "<sm_clock>&lost; MHz"),
        ("<clocks>", "<clocks><fan_speed>"),
        ("<sm_clock>1965", "<sm_clock>1965 MHz</sm_clock><sm_clock>1950"),
    ],
)
def test_a_damaged_element_costs_itself_alone(tmp_path: Path, damage: tuple[str, str]) -> None:
    """An element that is not well-formed, or says a thing twice, is rejected; its neighbours stay."""
    recording = read(tmp_path, document([gpu(0), gpu(1)]).replace(*damage, 1))
    assert [device.id for device in recording.run.devices] == ["gpu:1"]
    assert [reason for reason, *_ in rejected(recording)] == ["torn line"]


@pytest.mark.parametrize("indent", ["", "\n", "\n\t\t\t", "\n    "])
def test_indentation_says_nothing(tmp_path: Path, indent: str) -> None:
    """However its elements are laid out, a document says the same."""
    text = document_loop(2)
    assert read(tmp_path, text.replace("\n\t\t", indent)).series == read(tmp_path, text).series


def test_an_element_declares_nothing(tmp_path: Path) -> None:
    """A declaration within the element of a GPU is not well-formed, though it stands where one of its elements may."""
    declared = "<!DOCTYPE uuid [<!ELEMENT uuid ANY>]>"
    recording = read(tmp_path, document([gpu(0), gpu(1)]).replace("<uuid>", f"{declared}<uuid>", 1))
    assert [device.id for device in recording.run.devices] == ["gpu:1"]
    assert [reason for reason, *_ in rejected(recording)] == ["torn line"]


BOMB = """<!DOCTYPE nvidia_smi_log [
<!ENTITY a "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c SYSTEM "file:///etc/passwd">
]>"""


def test_entities_are_never_expanded(tmp_path: Path) -> None:
    """A document that declares entities is rejected whole, whatever uses them; the next one counts."""
    hostile = document().replace('<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">', BOMB)
    text = hostile.replace("NVIDIA L4", "&c;").replace(">N/A<", ">&b;<") + document(time=asctime(5))
    recording = read(tmp_path, text)
    assert (seconds(recording), recording.run.devices[0].model) == ([5], "NVIDIA L4")
    assert rejected(recording) == [("document that declares entities", 4, 3)]


def test_nothing_outside_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The document type that each document names is never looked for."""
    opened: list[str] = []
    log = tmp_path / "gpu.csv"
    log.write_text(document())
    real = Path.open

    def watched(path: Path, *given: object, **named: object) -> object:
        opened.append(path.name)
        return real(path, *given, **named)  # type: ignore[call-overload]  # passed on as they came

    monkeypatch.setattr(Path, "open", watched)
    extraction = FormExtraction(RawFile(log), ReadOptions(), QueryXml)
    assert sum(len(batch) for batch in extraction.batches()) == 1
    assert set(opened) == {"gpu.csv"}


def test_without_a_time(tmp_path: Path) -> None:
    """Documents without a time are counted with --interval."""
    text = document(time=None, schema=10) * 2
    with pytest.raises(SourceError, match="have no time"):
        read(tmp_path, text)
    assert seconds(read(tmp_path, text, ReadOptions(interval=3.0)), start=0) == [0, 3]


def test_messages_between_documents(tmp_path: Path) -> None:
    """What the driver says instead of a document is an event."""
    message = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    recording = read(tmp_path, f"{document()}{message}\n{document(time=asctime(5))}")
    assert (recording.run.quality.events, seconds(recording)) == (1, [0, 5])


def test_a_document_without_a_gpu_is_noise(tmp_path: Path) -> None:
    """Lines that say nothing of any row are not counted as more of one."""
    recording = read(tmp_path, document([]) + document())
    assert recording.run.quality.noise == 7


@pytest.mark.parametrize("lines", [1, 5, 100])
def test_pieces_may_end_anywhere(lines: int) -> None:
    """However a log is cut into pieces, its rows are the same, and each line is counted once."""
    text = document_loop(3).encode()
    whole = text.splitlines(keepends=True)

    def pieces(size: int) -> list[Piece]:
        starts = range(0, len(whole), size)
        return [Piece(b"".join(whole[at : at + size]), at + 1, at + size >= len(whole), size) for at in starts]

    def rows(size: int) -> tuple[list[int], int]:
        found = list(QueryXml().chunks(pieces(size)))
        return [number for chunk in found for number in chunk.numbers.tolist()], sum(chunk.lines for chunk in found)

    assert rows(lines) == rows(10_000)
    assert len(rows(lines)[0]) == 6


LOOP = document_loop(3).encode()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, len(LOOP)))
def test_a_cut_costs_one_document_at_most(tmp_path: Path, cut: int) -> None:
    """A log that ends at any byte keeps every GPU that is whole, and invents nothing."""
    rows, all_rows = read_cut_log(tmp_path, LOOP, cut, QueryXml)
    whole = LOOP[:cut].count(b"</gpu>")
    if rows is None:
        assert whole == 0
        return
    assert len(rows) == whole
    assert all(row in all_rows for row in rows)
