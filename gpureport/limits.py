"""The limits of what is read, one constant each; `docs/reference/limits.md` says them to people.

A limit bounds what a hostile or broken file can cost. Each lies far above what a recording needs.
"""

_MIB, _GIB = 2**20, 2**30

MOST_SETTINGS_BYTES = _MIB
"""Bytes of a file that a person writes by hand: settings, policies, maps, labels, steps; and of one label of a run."""
MOST_RECORD_BYTES = _GIB
"""Bytes of one file of a tracker: the points of a metric, or the operations of a process."""
MOST_SERIES_BYTES = 4 * _GIB
"""Bytes of a stored run's series, held in memory: about a thousand million rows."""
MOST_VALUE_BYTES = 16 * _MIB  # bytes of one value of a database
MOST_PIPE_BYTES = 2 * _GIB  # bytes that are taken from a pipe, which is copied to disk first
PIPE_PATIENCE = 10.0  # seconds until somebody must have written to a named pipe
MOST_UNPACKED_RATIO = 2000
"""A log in gzip, zstd, bzip2 or xz that holds more than `UNPACKED_FREELY` bytes is at most this many times its size:
recordings of GPUs that never work reach 150 times in gzip, 230 in zstd and bzip2, 720 in xz (measured). Gzip cannot
exceed 1,032."""
UNPACKED_FREELY = 64 * _MIB  # decompressed bytes up to which the ratio does not count
LONGEST_LINE = _MIB  # bytes of a line; a longer one is shortened, and counted
MOST_GPUS = 10_000  # GPUs of a run
DEEPEST_FOLDER = 40  # folders below one that is searched for logs or runs
MOST_SECRET_PATTERNS, LONGEST_SECRET_PATTERN = 100, 100
"""Names, and patterns, of `[secrets]`, and letters of each."""
MOST_LABELS = 10_000  # params, or tags, of a run of a tracker
MOST_ANSWER_BYTES = 256 * _MIB  # bytes of one answer of a tracking server
MOST_PAGES = 10_000  # pages of one list of a tracking server
FIRST_MICROSECOND, LAST_MICROSECOND = 0, 253_370_764_800 * 1_000_000
"""Times that are read: from 1970 on, before the year 9999, so that every zone and every end of a sample has a date."""
