"""The folder that `gpureport record` writes: the names of its files and the content of `run.json`."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from gpureport.parsing import parse_json
from gpureport.regular_files import read_regular_file

GPU_LOG, DMON_LOG, HOST_LOG = LOGS = ("gpu.csv", "dmon.log", "host.csv")
"""Rows of `nvidia-smi --query-gpu`, rows of `nvidia-smi dmon` for metrics that the query lacks, and the load of the
machine and the job's processes."""
RUN_FILE, LABEL_FILE = "run.json", "labels.json"
"""The `RecordedRun`, and the user's labels for the runs in a folder, which the recorder does not write."""
COMPRESSED_SUFFIXES = (".gz", ".zst", ".bz2", ".xz")
SCHEMA = "gpureport.record/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """The content of `run.json`, written when recording starts and when it ends.

    The time zone is an IANA name or an offset such as `+02:00`. Times are in microseconds since 1970 (UTC), and `ended`
    is None during the recording. `params` contain the visible configuration, `tags` the job's owner and location, and
    `notes` what was not recorded.
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
    """Return the original name of a recorder's log, even if compressed, or an empty string for other files."""
    name = path.stem if path.suffix in COMPRESSED_SUFFIXES else path.name
    return name if name in LOGS else ""


def format_run_file(run: RecordedRun) -> str:
    content = {"schema": SCHEMA} | asdict(run) | {"params": dict(run.params), "tags": dict(run.tags)}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def read_run_file(folder: Path) -> RecordedRun | None:
    """Return the content of a folder's run file, or None if it is missing or damaged."""
    import msgspec

    try:
        content = parse_json(read_regular_file(folder / RUN_FILE).decode("utf-8"))
        if content["schema"] != SCHEMA:
            return None
        # recordings from older versions have no tags
        pairs = {name: [*content.get(name, {}).items()] for name in ("params", "tags")}
        return msgspec.convert(content | pairs, RecordedRun, strict=False)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, msgspec.ValidationError):
        return None
