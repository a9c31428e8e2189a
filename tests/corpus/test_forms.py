"""Genuine output of nvidia-smi besides CSV of queries, read where it lies."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import ReadOptions
from gpureport.importers.decoding.pieces import head, pieces
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.logs.nvidia_smi.forms.mixed_forms import TEXT, MixedForms
from gpureport.importers.protocol.importer import HEAD_BYTES
from gpureport.importers.protocol.registry import HOST_IMPORTERS, IMPORTERS
from tests.genuine import CORPUS, needs_corpus
from tests.importers.accounts import column, kept, seconds
from tests.importers.written_logs import read

FOLDER = CORPUS / "corpus"
pytestmark = [
    pytest.mark.corpus,
    needs_corpus,
]
LOGS = sorted(FOLDER.iterdir()) if FOLDER.is_dir() else []
CAPTURES = [path for path in LOGS if path.name.startswith("utkuozdemir")]
COMMANDS = (
    "nvidia-smi pmon",
    "nvidia-smi dmon",
    *(
        f"nvidia-smi --query-{what}"
        for what in ("gpu", "compute-apps", "accounted-apps", "retired-pages", "remapped-rows", "supported-clocks")
    ),
)
"""How the command above a section begins; the block that its output is read as is called so."""


def commands(path: Path) -> list[tuple[int, str]]:
    """Return the sections of a capture: the line of their command, and the command."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(number, line[4:]) for number, line in enumerate(lines, 1) if line.startswith("# $ ")]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_every_row_of_dmon_in_a_capture_is_read(path: Path) -> None:
    """Both runs of `dmon -c 5` give five rows; without -o they have no time, so the series leaves them out."""
    mixed = MixedForms()
    for _ in mixed.chunks(pieces(RawFile(path))):
        pass
    assert mixed.rows["nvidia-smi dmon"] == 10
    assert mixed.rows["nvidia-smi --query-gpu"] == 2
    assert mixed.rows[TEXT] == 0
    kept(read(path))


def test_dmon_with_date_and_time() -> None:
    """Every cell of the log is in the series, in base units; the fourth line of headings is none of a row."""
    path = FOLDER / "essentialsofparallelcomputing-Chapter9__gpu_monitoring.log"
    recording = read(path)
    rows = [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]
    assert kept(recording) == len(rows) == 65
    metrics = {
        3: ("gpu_power_watts", 1),
        4: ("gpu_temperature_celsius", 1),
        5: ("gpu_memory_temperature_celsius", 1),
        6: ("gpu_utilization_ratio", 0.01),
        7: ("gpu_memory_controller_ratio", 0.01),
        10: ("gpu_memory_used_bytes", 2**20),
        12: ("gpu_memory_clock_hertz", 1e6),
        13: ("gpu_sm_clock_hertz", 1e6),
        14: ("pcie_receive_bytes_per_second", 1e6),
    }
    for place, (metric, scale) in metrics.items():
        assert column(recording, metric) == [pytest.approx(float(row[place]) * scale) for row in rows]
    clocks = [list(map(int, row[1].split(":"))) for row in rows]
    written = [hours * 3600 + minutes * 60 + whole for hours, minutes, whole in clocks]
    assert [second - seconds(recording)[0] for second in seconds(recording)] == [each - written[0] for each in written]


def test_dmon_without_time() -> None:
    """The log is refused, or read at the interval that a person names."""
    path = FOLDER / "michalaarne-create-FULL-BOT-new__nvidia_dmon.log"
    with pytest.raises(SourceError, match="have no time"):
        read(path)
    recording = read(path, ReadOptions(interval=1))
    assert kept(recording) == 10
    assert column(recording, "gpu_utilization_ratio") == [0.46, 0.45, 0.46, 0.45, 0.46, 0.48, 0.47, 0.35, 0.04, 0.08]
    assert recording.run.quality.synthetic_time


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_no_log_is_claimed_twice(path: Path) -> None:
    """One importer at most recognises a log."""
    text = head(RawFile(path), HEAD_BYTES)
    claims = [importer.kind for importer in (*IMPORTERS, *HOST_IMPORTERS) if importer.identify(text)]
    assert len(claims) <= 1
