"""The rows of `docs/reference/limits.md`: what is limited, how much is read, and what happens beyond it."""

from gpureport.limits import (
    DEEPEST_FOLDER,
    LONGEST_LINE,
    LONGEST_SECRET_PATTERN,
    MOST_ANSWER_BYTES,
    MOST_GPUS,
    MOST_LABELS,
    MOST_PAGES,
    MOST_PIPE_BYTES,
    MOST_RECORD_BYTES,
    MOST_SECRET_PATTERNS,
    MOST_SERIES_BYTES,
    MOST_SETTINGS_BYTES,
    MOST_UNPACKED_RATIO,
    MOST_VALUE_BYTES,
    PIPE_PATIENCE,
    UNPACKED_FREELY,
)


def _bytes(count: int) -> str:
    return f"{count // 2**30} GiB" if count >= 2**30 else f"{count // 2**20} MiB"


_LEFT_OUT = "the run is left out and named, the others are read"
LIMITS = (
    (
        "Settings, policies, maps, steps, and params, tags and `meta.yaml` of a tracker's run",
        f"{_bytes(MOST_SETTINGS_BYTES)} each",
        "refused; shorten the file",
    ),
    (
        "Names, and patterns, of `[secrets]` in the settings",
        f"{MOST_SECRET_PATTERNS} each, of {LONGEST_SECRET_PATTERN} letters",
        "refused; let one with `*` stand for several",
    ),
    ("Files of points or operations of a tracker's run", f"{_bytes(MOST_RECORD_BYTES)} each", _LEFT_OUT),
    ("Params, and tags, of a run in a local store of MLflow", f"{MOST_LABELS:,} each", _LEFT_OUT),
    (
        "The series of a stored run, and its training metrics",
        f"{_bytes(MOST_SERIES_BYTES)} each",
        "refused; `fleet` leaves the run out and names it",
    ),
    ("A value in a database", _bytes(MOST_VALUE_BYTES), _LEFT_OUT),
    (
        "Files and folders of a tracker, and folders of logs",
        f"{DEEPEST_FOLDER} folders deep",
        "refused; give the folder that holds the runs",
    ),
    (
        "Links, named pipes, sockets and devices in a tracker's folder",
        "links that stay in it",
        f"never opened: {_LEFT_OUT}",
    ),
    (
        "An answer of a tracking server, and the pages of a list",
        f"{_bytes(MOST_ANSWER_BYTES)}, {MOST_PAGES:,} pages",
        "refused; read fewer runs, by `--run` or `--filter`",
    ),
    (
        "A log in gzip, zstd, bzip2 or xz",
        f"{_bytes(UNPACKED_FREELY)}, or {MOST_UNPACKED_RATIO} times its size where that is more",
        "refused; unpack it, and give the log in it",
    ),
    (
        "Archives: zip, 7-Zip, tar, and a compressed file in another",
        "none",
        "refused; unpack it, and give the files in it",
    ),
    (
        "Standard input, and a named pipe",
        f"{_bytes(MOST_PIPE_BYTES)}; its writer comes within {PIPE_PATIENCE:g} s",
        "refused; write a file and give that",
    ),
    ("Devices such as `/dev/zero`", "none", "refused"),
    ("A line of a log", _bytes(LONGEST_LINE), "shortened, and counted in the data quality"),
    ("GPUs of a run", f"{MOST_GPUS:,}", "refused; give a part of them with `--gpus`, or a log a node"),
    (
        "Machines of a table of labels",
        "100,000 in a cell, 2,000,000 in a table",
        "a longer list stays a text; a larger table is refused: give fewer days",
    ),
    ("Times", "years 1970 to 9998", "the row or point is rejected, and counted in the data quality"),
    (
        "Nesting of JSON and TOML",
        "in JSON some hundreds of levels, as deep as Python reads them; in TOML 50",
        "the document is not understood: rejected and counted in a log, refused elsewhere",
    ),
)
"""All limits, in the order of the page."""
