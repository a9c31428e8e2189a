"""A clean log runs through few modules, and each oddity leads into its own stage."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import gpureport
from gpureport.errors import SourceError
from gpureport.importers.reading.oddities import ODDITIES, PLAIN_HEADER, Oddity
from tests.importers.reading.called_modules import called_modules

ROAD = {
    "reading.sources",
    "protocol.registry",
    "logs.nvidia_smi.importer",
    "logs.nvidia_smi.query.non_data_lines",
    "reading.folders",
    "reading.run_files",
    "reading.run_names",
    "reading.run_reading",
    "protocol.importer",
    "protocol.named_models",
    "logs.nvidia_smi.query.extraction",
    "decoding.raw_file",
    "decoding.pieces",
    "delimited.parsing",
    "delimited.layout",
    "logs.nvidia_smi.query.fields",
    "values.cells",
    "values.numbers",
    "values.stamps",
    "devices.column_values",
    "devices.line_tally",
    "devices.gpu_identity",
    "devices.identification",
    "ordering.row_placement",
    "timebase.device_clock",
}
"""The modules of the plain road, in the order of the log: recognised, decoded, told apart, put in time."""
OPTIONS: dict[str, dict[str, Any]] = {"": {}, "--interval": {"interval": 1.0}, "--tz": {"tz": "Europe/Berlin"}}
SECONDS = 60


def row(gpu: int) -> str:
    """Return a plain row."""
    uuid = f"GPU-5a3e17c0-0000-4000-8000-{gpu:012d}"
    return f"2026/03/14 09:26:53.{589 + gpu}, {gpu}, {uuid}, NVIDIA H100, 93 %, 81559 MiB, 612.40 W"


def at(line: str, second: int) -> str:
    """Return a line as it is written at another second."""
    return re.sub(r"(\d\d:\d\d):53", rf"\1:{second:02d}", line)


def plain_rows(gpus: int) -> Iterator[str]:
    """Yield plain rows of a minute."""
    for second in range(SECONDS):
        yield from (at(row(gpu), second) for gpu in range(gpus))


def log_with(oddity: Oddity) -> str:
    """Return a log that holds an oddity."""
    if oddity.header is not None:
        lines = [oddity.header, *(at(oddity.example, second) for second in range(SECONDS))]
        return "\n".join(line for line in lines if line) + "\n"
    rows = list(plain_rows(gpus=2))
    return "\n".join([PLAIN_HEADER, *rows[:100], oddity.example, *rows[100:], ""])


def modules_for(text: str, folder: Path, option: str = "") -> set[str]:
    """Return the modules that the reading of a log runs through."""
    path = folder / "train.csv"
    path.write_text(text)

    def read() -> None:
        with suppress(SourceError):
            gpureport.read(path, **OPTIONS[option])

    # modules are imported, and tables made, by the first reading
    read()
    return called_modules(read)


def test_a_clean_log_takes_the_plain_road(tmp_path: Path) -> None:
    """Eight GPUs, nothing odd: whoever reads these modules knows how a log is read."""
    text = "\n".join([PLAIN_HEADER, *plain_rows(gpus=8), ""])
    assert modules_for(text, tmp_path) == ROAD


@pytest.mark.parametrize("oddity", ODDITIES, ids=[each.stage for each in ODDITIES])
def test_an_oddity_is_taken_by_its_stage(tmp_path: Path, oddity: Oddity) -> None:
    """The example of the table leads there, and a clean log does not."""
    assert oddity.stage not in ROAD
    assert oddity.stage in modules_for(log_with(oddity), tmp_path, oddity.option)
