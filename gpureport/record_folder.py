"""The folder that `gpureport record` writes: the names of its files, and what its `run.json` says."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from gpureport.parsing import parse_json
from gpureport.regular_files import read_regular_file

GPU_LOG, DMON_LOG, HOST_LOG = LOGS = ("gpu.csv", "dmon.log", "host.csv")
"""Rows of `nvidia-smi --query-gpu`; of `nvidia-smi dmon`, what --query-gpu has no field for; and the load of the
machine and of the job's processes."""
RUN_FILE, LABEL_FILE = "run.json", "labels.json"
"""What the run was, see `RecordedRun`; and what a person says of the runs of any folder, which no recorder writes."""
COMPRESSED_SUFFIXES = (".gz", ".zst", ".bz2", ".xz")
SCHEMA = "gpureport.record/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What `run.json` says, written when recording begins, and again when it ends.

    The zone is an IANA name or an offset such as `+02:00`; times are microseconds since 1970 (UTC), `ended` None while
    it goes on. `params` are what could be seen of the configuration, `tags` whose job it was, `notes` what was not
    recorded.
    """

    command: tuple[str, ...] = ()
    host: str = ""
    timezone: str = ""
    started: int
    ended: int | None = None
    exit_code: int | None = None
    interval: float = 1.0
    params: tuple[tuple[str, str], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def name_log(path: Path) -> str:
    """Return the name under which the recorder wrote a log, perhaps compressed since; empty for others."""
    name = path.stem if path.suffix in COMPRESSED_SUFFIXES else path.name
    return name if name in LOGS else ""


def format_run_file(run: RecordedRun) -> str:
    content = {"schema": SCHEMA} | asdict(run) | {"params": dict(run.params), "tags": dict(run.tags)}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def read_run_file(folder: Path) -> RecordedRun | None:
    """Return what the run file of a folder says; None if missing or damaged."""
    import msgspec

    try:
        content = parse_json(read_regular_file(folder / RUN_FILE).decode("utf-8"))
        if content["schema"] != SCHEMA:
            return None
        # recordings of older versions have no tags
        pairs = {name: [*content.get(name, {}).items()] for name in ("params", "tags")}
        return msgspec.convert(content | pairs, RecordedRun, strict=False)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, msgspec.ValidationError):
        return None
