"""Explains unreadable files, and picks the informative lines of a long text."""

import re
import string
from collections import Counter

from gpureport.errors import CodedProblem
from gpureport.importers.account import find_message_kind, format_columns_option
from gpureport.importers.protocol import HEAD_BYTES
from gpureport.importers.source_text import head_text
from gpureport.importers.tools.mapped import draft_map
from gpureport.importers.training import TrainingLog
from gpureport.recording_advice import RECORDS_ONE
from gpureport.redaction import redact_start

_WANTED_BESIDE = (
    "give output from sar, sadf -d, mpstat, vmstat -t, pidstat or top -b, or a CSV with a timestamp and cpu_percent "
    f"({RECORDS_ONE})"
)
_JSON = "convert it to a CSV with a header and one column per metric; --source-kind mapped prints a draft map for it"
_AS_HOST = "give a GPU log as a source, and this log with --host"
_MAP = "--source-kind mapped prints a draft map; complete it and give it with --map"
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?: ?[%A-Za-z]+)?", re.ASCII)
_MOST_CELLS = 50
"""Maximum number of cells in a line of numbers that is treated as a query without a header."""
_PREFIXED = re.compile(r"\ufeff?\s*(\S.{0,79}?[^,;\s][^\S\n]+)timestamp, ?[a-z]")
"""Matches text that another program wrote before the header of a query."""
_TAKE_AWAY = "remove that text (of several tasks, keep one), perhaps with sed -E 's/^.*(timestamp,|20[0-9]{2}\\/)/\\1/'"
_DRIVER = (
    "an error message, not a log",
    "fix the problem on the machine until plain nvidia-smi shows a table, then record again",
    "error_message",
)
_FIRST_LINES: dict[str, CodedProblem] = {
    r'Field "[^"]*" is not a valid field to query': (
        "an error message, not a log",
        "leave that field out of the query (nvidia-smi --help-query-gpu lists the supported fields)",
        "error_message",
    ),
    r".*nvidia-smi.*(?:not found|not recognized)": _DRIVER,
    r"version https://git-lfs\.github\.com/": (
        "a Git LFS pointer, not the file itself",
        "fetch the file with git lfs pull",
        "git_lfs_pointer",
    ),
    r"JobID\|(?!.*TRESUsageIn)": (
        "a Slurm accounting table without GPU utilisation",
        "add TRESUsageInAve to sacct --format",
        "unusable_table",
    ),
    r"JobID\||(?:task_name,)?timestamp,project_name,run_id,": (
        "an accounting table, not a GPU log",
        "give it as a file, and as the only source",
        "piped_table",
    ),
}
"""Descriptions of files, by patterns for the first line."""


def explain(name: str, head: bytes, *, beside: bool, is_other: bool) -> CodedProblem:
    """Return what a file is, what to do, and a code. `is_other` means a host log given as a GPU log, or vice versa."""
    text = head_text(head)
    first = head.decode(errors="replace").lstrip("\ufeff").lstrip().partition("\n")[0].strip()
    # the beginning of the first line that is not blank
    start = redact_start(first, 60).replace("\t", " ")
    shown = start if start.isprintable() and "\ufffd" not in start else ""
    before = _PREFIXED.match(text)
    patterns = (said for pattern, said in _FIRST_LINES.items() if re.match(pattern, first, re.IGNORECASE))
    known = _DRIVER if find_message_kind(first) else next(patterns, None)
    row = [cell.strip() for cell in text.partition("\n")[0].split(",")]
    bare = 1 < len(row) <= _MOST_CELLS and all(map(_NUMBER.fullmatch, row))
    hint = f"{RECORDS_ONE}; if it is one without its header, {format_columns_option(row)}" if bare else RECORDS_ONE
    hint = _MAP if draft_map(text) else hint
    what, *rest = known or ("", "", "")
    what += f" ({redact_start(first, 120)})" if "error_message" in rest else ""
    return next(
        problem
        for holds, problem in (
            (
                is_other and beside,
                (
                    "a GPU log, not a host log",
                    f"give it as a source; with --host, {_WANTED_BESIDE}",
                    "gpu_log_as_host",
                ),
            ),
            (
                is_other and "gpu" not in first.lower(),
                ("a host log, which contains no GPU data", _AS_HOST, "host_log_as_gpu"),
            ),
            (
                is_other,
                (
                    "a host log, since no column identifies the GPU",
                    f"{_AS_HOST}; to read its GPU columns, {_MAP}",
                    "host_log_as_gpu",
                ),
            ),
            (
                not shown and name.startswith("nvstats"),
                (
                    "it is a binary log from nvidia-smi daemon, which is not supported",
                    f"convert it with nvidia-smi replay -f {name} -r log.txt, then give log.txt",
                    "daemon_log",
                ),
            ),
            (
                before,
                (
                    f"another program wrote {before and before[1]!r} before the output of nvidia-smi",
                    _TAKE_AWAY,
                    "prefixed_lines",
                ),
            ),
            (beside and not shown, ("not a text log", _WANTED_BESIDE, "not_a_host_log")),
            (beside, (f"not a recognised host log (first line: {shown})", _WANTED_BESIDE, "not_a_host_log")),
            (not shown, ("not a text log", RECORDS_ONE, "not_a_gpu_log")),
            (known, (what, rest[0], rest[1])),
            (
                TrainingLog().is_training_log(head),
                (
                    "a training log, which contains no GPU data",
                    "give a GPU log as a source, and this log with --training",
                    "training_log",
                ),
            ),
            (first[:1] == "{", ("JSON from an unknown tool", _JSON, "unknown_json")),
            (True, (f"not a recognised GPU log (first line: {shown})", hint, "not_a_gpu_log")),
        )
        if holds
    )


_MOST_LINES, _OF_A_KIND = 300_000, 300


def thinned(data: bytes) -> bytes:
    """Shorten a text to the first lines matching each pattern, which suffice to recognise a log."""
    seen, kept = Counter[bytes](), list[bytes]()
    kinds = data.translate(None, (string.ascii_letters + string.digits).encode()).split(b"\n", _MOST_LINES)
    for line, kind in zip(data.split(b"\n", _MOST_LINES)[:_MOST_LINES], kinds, strict=False):
        seen[kind] += 1
        if seen[kind] <= _OF_A_KIND:
            kept.append(line[:HEAD_BYTES])
    return b"\n".join(kept)
