"""Genuine logs robbed of their headers: they are seen, and what is named for them is what the header said."""

import csv
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gpureport.importers.logs.nvidia_smi.query import fields
from gpureport.importers.logs.nvidia_smi.query.headerless import is_headerless
from gpureport.importers.logs.nvidia_smi.query.unnamed_gpus.tick_size import infer_ticks
from gpureport.importers.values import stamps
from tests.genuine import CORPUS, needs_corpus

pytestmark = [
    pytest.mark.corpus,
    needs_corpus,
]
HEADS = (5, 30, 100, 500, 5000)
UNIT = re.compile(r" (%|MiB|W|MHz)$")
SEVERAL = {"leo-liuzy-mend__gpu_profile.csv": (8, "low"), "tkjunsei-OpenAD__gpu_usage.csv": (2, "high")}
"""Logs whose rows come in ticks of several GPUs; all others are of one GPU, or too short to tell."""


def index() -> list[dict[str, str]]:
    """Return the rows of the corpus' index, none when there is no corpus."""
    path = CORPUS / "INDEX.tsv"
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines(), delimiter="\t")) if path.is_file() else []


def table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the header of a log and its complete rows."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    header = [cell.strip() for cell in lines[0].split(",")]
    rows = [[cell.strip() for cell in line.split(",")] for line in lines[1:] if line != lines[0]]
    return header, [row for row in rows if len(row) == len(header)]


LOGS = [
    path
    for path in [
        *(CORPUS / row["local"] for row in index() if row["fmt"].startswith("query-gpu csv")),
        *(sorted((CORPUS / "ab_pairs").glob("clk*.csv")) if CORPUS.is_dir() else []),
    ]
    if len(header := table(path)[0]) > 1 and all(fields.parse_query_field(heading) for heading in header)
]


def named(heading: str) -> str:
    """Return nvidia-smi's present name of a heading's field."""
    return fields.canonicalize(heading.partition(" [")[0])


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_a_log_without_its_header_is_seen(path: Path) -> None:
    """Without its header it is known for what it is, with it it is left to those who read headers."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[:500]
    assert not is_headerless(lines)
    body = [line for line in lines if line != lines[0]]
    assert is_headerless(body) == ("timestamp" in table(path)[0] and len(body) > 1 and "lzwei" not in path.name)


@pytest.mark.parametrize("row", index(), ids=lambda row: Path(row["local"]).name)
def test_no_other_file_is_taken_for_one(row: dict[str, str]) -> None:
    """Tables, captures, XML, dmon and job logs are none."""
    assert not is_headerless((CORPUS / row["local"]).read_text(encoding="utf-8", errors="replace").splitlines()[:500])


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_gpus_are_counted_by_the_rows_of_a_tick(path: Path) -> None:
    """Several GPUs are seen where there are several, and nowhere else."""
    header, rows = table(path)
    place = header.index("timestamp")
    times, good = stamps.parse(pa.array([row[place] for row in rows]))
    others = [position for position in range(len(header)) if position != place]
    columns = [np.unique([row[at] for row in rows], return_inverse=True)[1][good] for at in others]
    found = infer_ticks(times[good], columns)
    assert (found and (found.size, found.confidence)) == SEVERAL.get(path.name)
