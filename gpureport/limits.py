"""The limits of what is read, one constant each; the table at the end is `docs/reference/limits.md`.

A limit bounds what a hostile or broken file can cost. Each lies far above what a recording needs.
"""

from typing import NamedTuple

_MIB, _GIB = 2**20, 2**30

MOST_SETTINGS_BYTES = _MIB
"""Bytes of a file that a person writes by hand: settings, policies, maps, labels, steps; and of one label of a run."""
MOST_RECORD_BYTES = _GIB
"""Bytes of one file of a tracker: the points of a metric, or the operations of a process."""
MOST_SERIES_BYTES = 4 * _GIB
"""Bytes of the series of a stored run, which are held in memory: about a thousand million rows."""
MOST_VALUE_BYTES = 16 * _MIB
"""Bytes of one value of a database."""
MOST_PIPE_BYTES = 2 * _GIB
"""Bytes that are taken from a pipe, which is copied to disk first."""
PIPE_PATIENCE = 10.0
"""Seconds until somebody must have written to a named pipe."""
MOST_UNPACKED_RATIO = 2000
"""A log in gzip, zstd, bzip2 or xz that holds more than `UNPACKED_FREELY` bytes is at most this many times its size:
recordings of GPUs that never work reach 150 times in gzip, 230 in zstd and bzip2, 720 in xz (measured). Gzip cannot
exceed 1,032."""
UNPACKED_FREELY = 64 * _MIB
"""Decompressed bytes up to which the ratio does not count."""
LONGEST_LINE = _MIB
"""Bytes of a line; a longer one is shortened, and counted."""
MOST_GPUS = 10_000
"""GPUs of a run."""
DEEPEST_FOLDER = 40
"""Folders below one that is searched for logs or runs."""
MOST_FILES = 200_000
"""Files and folders that are looked at in a folder."""
MOST_SECRET_PATTERNS, LONGEST_SECRET_PATTERN = 100, 100
"""Names, and patterns, of `[secrets]`, and letters of each."""
MOST_LABELS = 10_000
"""Params, or tags, of a run of a tracker."""
MOST_ANSWER_BYTES = 256 * _MIB
"""Bytes of one answer of a tracking server."""
MOST_PAGES = 10_000
"""Pages of one list of a tracking server."""
FIRST_MICROSECOND, LAST_MICROSECOND = 0, 253_370_764_800 * 1_000_000
"""Times that are read: from 1970 on, before the year 9999, so that every zone and every end of a sample has a date."""


class Limit(NamedTuple):
    """A row of the table: what is limited, how much is read, and what happens beyond it."""

    what: str
    most: str
    beyond: str


def _bytes(count: int) -> str:
    return f"{count // _GIB} GiB" if count >= _GIB else f"{count // _MIB} MiB"


_LEFT_OUT = "the run is left out and named, the others are read"
LIMITS = (
    Limit(
        "Settings, policies, maps, steps, and params, tags and `meta.yaml` of a tracker's run",
        f"{_bytes(MOST_SETTINGS_BYTES)} each",
        "refused; shorten the file",
    ),
    Limit(
        "Names, and patterns, of `[secrets]` in the settings",
        f"{MOST_SECRET_PATTERNS} each, of {LONGEST_SECRET_PATTERN} letters",
        "refused; let one with `*` stand for several",
    ),
    Limit("Files of points or operations of a tracker's run", f"{_bytes(MOST_RECORD_BYTES)} each", _LEFT_OUT),
    Limit("Params, and tags, of a run in a local store of MLflow", f"{MOST_LABELS:,} each", _LEFT_OUT),
    Limit(
        "The series of a stored run, and its training metrics",
        f"{_bytes(MOST_SERIES_BYTES)} each",
        "refused; `fleet` leaves the run out and names it",
    ),
    Limit("A value in a database", _bytes(MOST_VALUE_BYTES), _LEFT_OUT),
    Limit(
        "Files and folders of a tracker, and folders of logs",
        f"{MOST_FILES:,} in a folder, {DEEPEST_FOLDER} folders deep",
        "refused; give the folder that holds the runs",
    ),
    Limit(
        "Links, named pipes, sockets and devices in a tracker's folder",
        "links that stay in it",
        f"never opened: {_LEFT_OUT}",
    ),
    Limit(
        "An answer of a tracking server, and the pages of a list",
        f"{_bytes(MOST_ANSWER_BYTES)}, {MOST_PAGES:,} pages",
        "refused; read fewer runs, by `--run` or `--filter`",
    ),
    Limit(
        "A log in gzip, zstd, bzip2 or xz",
        f"{_bytes(UNPACKED_FREELY)}, or {MOST_UNPACKED_RATIO} times its size where that is more",
        "refused; unpack it, and give the log in it",
    ),
    Limit(
        "Archives: zip, 7-Zip, tar, and a compressed file in another",
        "none",
        "refused; unpack it, and give the files in it",
    ),
    Limit(
        "Standard input, and a named pipe",
        f"{_bytes(MOST_PIPE_BYTES)}; its writer comes within {PIPE_PATIENCE:g} s",
        "refused; write a file and give that",
    ),
    Limit("Devices such as `/dev/zero`", "none", "refused"),
    Limit("A line of a log", _bytes(LONGEST_LINE), "shortened, and counted in the data quality"),
    Limit("GPUs of a run", f"{MOST_GPUS:,}", "refused; give a part of them with `--gpus`, or a log a node"),
    Limit(
        "Machines of a table of labels",
        "100,000 in a cell, 2,000,000 in a table",
        "a longer list stays a text; a larger table is refused: give fewer days",
    ),
    Limit("Times", "years 1970 to 9998", "the row or point is rejected, and counted in the data quality"),
    Limit(
        "Nesting of JSON and TOML",
        "in JSON some hundreds of levels, as deep as Python reads them; in TOML 50",
        "the document is not understood: rejected and counted in a log, refused elsewhere",
    ),
)
"""All limits, in the order of the page."""
