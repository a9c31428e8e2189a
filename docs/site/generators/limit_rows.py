"""The rows of `docs/reference/limits.md`: what is limited, to how much, and what happens beyond it."""

from gpureport.parsing import (
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


_LEFT_OUT = "the run is left out"
LIMITS = (
    (
        "Settings, policies, maps, steps; params, tags and `meta.yaml` of a tracker's run",
        _bytes(MOST_SETTINGS_BYTES),
        "",
    ),
    (
        "Each list in `[secrets]` (names, patterns)",
        f"{MOST_SECRET_PATTERNS}, each up to {LONGEST_SECRET_PATTERN} characters",
        "combine several with `*`",
    ),
    ("Files with a tracker run's points or operations", _bytes(MOST_RECORD_BYTES), _LEFT_OUT),
    ("Params of a run in a local MLflow store, and its tags (each)", f"{MOST_LABELS:,}", _LEFT_OUT),
    ("The series of a stored run, and its training metrics", _bytes(MOST_SERIES_BYTES), "`fleet` leaves the run out"),
    ("A value in a database", _bytes(MOST_VALUE_BYTES), _LEFT_OUT),
    ("Folders of a tracker or of logs", f"{DEEPEST_FOLDER} deep", "pass the folder with the runs"),
    ("Links, pipes, sockets and devices in a tracker's folder", "links within it", _LEFT_OUT),
    (
        "A response from a tracking server, and the pages of a list",
        f"{_bytes(MOST_ANSWER_BYTES)}, {MOST_PAGES:,} pages",
        "read fewer runs, with `--run` or `--filter`",
    ),
    (
        "A gzip, zstd, bzip2 or xz log",
        f"{_bytes(UNPACKED_FREELY)}, or {MOST_UNPACKED_RATIO} times its size",
        "unpack it first",
    ),
    ("Zip, 7-Zip, tar, and nested compressed files", "none", "unpack it first"),
    (
        "Standard input, and a named pipe",
        f"{_bytes(MOST_PIPE_BYTES)}; the writer must connect within {PIPE_PATIENCE:g} s",
        "give a file instead",
    ),
    ("A line in a log", _bytes(LONGEST_LINE), "shortened, and counted in the data quality"),
    ("GPUs in a run", f"{MOST_GPUS:,}", "select GPUs with `--gpus`, or use one log per node"),
    ("Machines in a label table", "100,000 in a cell, 2,000,000 in a table", "use fewer days"),
    ("Times", "years 1970 to 9998", "the row or point is rejected"),
    ("Nesting", "TOML 50 levels, JSON a few hundred", "rejected in a log, refused elsewhere"),
)
"""All limits, in the order of the page: the subject, the amount, and what to do or what happens beyond it."""
