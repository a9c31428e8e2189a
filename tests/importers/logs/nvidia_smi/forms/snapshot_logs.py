"""Reads logs of whole snapshots, for tests of every form that nvidia-smi writes them in."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpureport.errors import SourceError
from gpureport.importers import ReadOptions
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.text.text_log import Form, FormExtraction
from gpureport.testing import Recording
from tests.importers.accounts import kept
from tests.importers.written_logs import read_text

Rows = list[dict[str, Any]]


def read(folder: Path, text: str | bytes, options: ReadOptions | None = None) -> Recording:
    """Return what a log holds, after checking that every line is accounted for."""
    recording = read_text(folder, text, options)
    kept(recording)
    return recording


def read_cut_log(folder: Path, log: bytes, cut: int, form: Callable[[], Form]) -> tuple[Rows | None, Rows]:
    """Return the rows of the first `cut` bytes, None where they are no log, and those of the whole log."""
    whole, _ = _read_rows(folder, log, form)
    try:
        rows, accounted = _read_rows(folder, log[:cut], form)
    except SourceError:
        return None, whole
    assert accounted
    return rows, whole


def _read_rows(folder: Path, log: bytes, form: Callable[[], Form]) -> tuple[Rows, bool]:
    path = folder / "gpu.log"
    path.write_bytes(log)
    extraction = FormExtraction(RawFile(path), ReadOptions(), form)
    rows = [row for batch in extraction.batches() for row in batch.to_pylist()]
    return rows, extraction.outcome().quality.accounted
