"""Logs large enough to be written in several steps, a store that holds one of them, and what its files say."""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tests.support import logs

SCALE = int(os.environ.get("GPUREPORT_TRIALS", "1"))
"""How many times more trials are made than in an ordinary run of the tests."""
_ROWS = 1500


def noisy(seed: int, rows: int = _ROWS, gpus: int = 2) -> str:
    lines = [
        logs.row(second, gpu, util=(second * 31 + gpu * 7 + seed) % 100, power=f"{second * (7919 + seed) % 1000}.50 W")
        for second in range(rows)
        for gpu in range(gpus)
    ]
    return "\n".join([logs.HEADER, *lines, ""])


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    folder: Path
    said: dict[str, Any]
    rows: pa.Table

    @property
    def run(self) -> dict[str, Any]:
        run: dict[str, Any] = self.said["run"]
        return run

    @property
    def labels(self) -> tuple[str, str | None, dict[str, str]]:
        return self.run["name"], self.run["step"], self.run["tags"]


def read_store(store: Path) -> dict[str, Stored]:
    found = {}
    for path in sorted(store.glob("runs/[!.]*/run.json")):
        said, series = json.loads(path.read_text()), path.with_name("hardware.parquet").read_bytes()
        assert said.get("series_sha256") in {None, sha256(series).hexdigest()}, path
        found[path.parent.name] = Stored(
            folder=path.parent, said=said, rows=parquet.read_table(pa.BufferReader(series))
        )
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def leftovers(store: Path) -> list[Path]:
    return [path for path in store.rglob("*") if ".tmp" in path.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A store that holds the run of the log `old` and not of `new`, and what each is stored as."""

    folder: Path
    runs: dict[str, Stored]
    old_id: str

    def copy(self, folder: Path) -> Path:
        shutil.copytree(self.folder, folder)
        return folder

    def ingest(self, log: str, store: Path, *more: str) -> Sequence[str]:
        return ("ingest", str(self.folder.with_name(f"{log}.csv")), *more, "--store", str(store))


def unsign(path: Path, **run: object) -> None:
    """Make a run what it was before `run.json` and the series had a checksum, and say something else of it."""
    content = {key: value for key, value in json.loads(path.read_text()).items() if "sha256" not in key}
    content["run"] |= run
    path.write_text(json.dumps(content))
