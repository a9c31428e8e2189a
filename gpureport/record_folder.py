"""The folder that `gpureport record` writes: the names of its files, and what its `run.json` says."""

import json
from dataclasses import dataclass, fields
from pathlib import Path

from gpureport.parsing import parse_json
from gpureport.regular_files import read_regular_file

GPU_LOG = "gpu.csv"
"""Rows of `nvidia-smi --query-gpu`."""
DMON_LOG = "dmon.log"
"""Rows of `nvidia-smi dmon`, what --query-gpu has no field for."""
HOST_LOG = "host.csv"
"""The load of the machine and of the job's processes."""
RUN_FILE = "run.json"
"""What the run was: see `RecordedRun`."""
LABEL_FILE = "labels.json"
"""What a person says of the runs of any folder of logs; the recorder writes none."""
LOGS = (GPU_LOG, DMON_LOG, HOST_LOG)
COMPRESSED_SUFFIXES = (".gz", ".zst", ".bz2", ".xz")
"""Ends of the names of logs that were compressed after they were written, of any recorder."""

SCHEMA = "gpureport.record/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What `run.json` says; it is written when recording begins, and again when it ends.

    Attributes:
        command: the job's command line with its secrets replaced; empty when none was given.
        host: name of the machine.
        timezone: zone of the stamps in the logs, as an IANA name or an offset such as `+02:00`.
        started: when recording began, in microseconds since 1970 (UTC).
        ended: when it ended; None while it goes on, and when the recorder was killed.
        exit_code: exit code of the job; None without a job, and while it runs.
        interval: seconds between two samples.
        params: what could be seen of the configuration, such as versions of packages, by name.
        tags: whose job it was and where it ran, by the names of `label_tags`.
        notes: what could not be recorded, and why; each a whole sentence.
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
    """Return the name under which the recorder wrote a log that may have been compressed since; empty for others."""
    name = path.stem if path.suffix in COMPRESSED_SUFFIXES else path.name
    return name if name in LOGS else ""


def format_run_file(run: RecordedRun) -> str:
    """Return a run as the text of its `run.json`."""
    content = {"schema": SCHEMA} | {each.name: getattr(run, each.name) for each in fields(run)}
    return (
        json.dumps(content | {"params": dict(run.params), "tags": dict(run.tags)}, indent=2, ensure_ascii=False) + "\n"
    )


def parse_run_file(text: str) -> RecordedRun | None:
    """Return what a `run.json` says; None when the text is none."""
    import msgspec  # noqa: PLC0415 - most logs lie beside none

    try:
        content = parse_json(text)
        if content["schema"] != SCHEMA:
            return None
        # recordings of older versions have no tags
        pairs = {name: [*content.get(name, {}).items()] for name in ("params", "tags")}
        return msgspec.convert(content | pairs, RecordedRun, strict=False)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, msgspec.ValidationError):
        return None


def read_run_file(folder: Path) -> RecordedRun | None:
    """Return what the run file of a folder says; None where there is none, or it is damaged."""
    try:
        return parse_run_file(read_regular_file(folder / RUN_FILE).decode("utf-8"))
    except (OSError, ValueError):
        return None
