"""What a file is that nothing reads, and what to do about it."""

import json
import re
from contextlib import suppress

from gpureport.errors import CodedProblem
from gpureport.importers.account import is_driver_message
from gpureport.importers.first_lines import HINT as TAKE_AWAY
from gpureport.importers.first_lines import find_line_prefix
from gpureport.importers.headings import is_time_heading
from gpureport.importers.note_text import format_columns_option
from gpureport.importers.source_text import head_text
from gpureport.importers.tools.mapped import draft_map
from gpureport.importers.training import TrainingLog
from gpureport.recording_advice import RECORDS_ONE
from gpureport.redaction import redact_start

_WANTED_BESIDE = (
    "give what sar, sadf -d, mpstat, vmstat -t, pidstat or top -b print, or a CSV with a timestamp and cpu_percent "
    f"({RECORDS_ONE})"
)
_JSON = "write it as a CSV with a header and one column per metric: --source-kind mapped prints a map for that"
_MAP = "--source-kind mapped prints a map to complete and give with --map"
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?: ?[%A-Za-z]+)?", re.ASCII)
_MOST_CELLS = 50
"""Cells of a line of numbers that may be a query without its header."""
_DRIVER: CodedProblem = (
    "an error message, not a log",
    "fix this on the machine until nvidia-smi by itself shows a table, then record again",
    "error_message",
)
_FIRST_LINES: dict[str, CodedProblem] = {
    r'Field "[^"]*" is not a valid field to query': (
        "an error message, not a log",
        "leave that field out of the query (nvidia-smi --help-query-gpu lists the fields the driver knows)",
        "error_message",
    ),
    r".*nvidia-smi.*(?:not found|not recognized)": _DRIVER,
    r"version https://git-lfs\.github\.com/": (
        "a Git LFS pointer, not the file itself",
        "fetch the file with git lfs pull",
        "git_lfs_pointer",
    ),
    r"JobID\|(?!.*TRESUsageIn)": (
        "a table of Slurm's accounting without the use of GPUs",
        "add TRESUsageInAve to --format of sacct",
        "unusable_table",
    ),
    r"JobID\||timestamp,project_name,run_id,": (
        "an accounting table that comes through a pipe",
        "save it as a file, and give that",
        "piped_table",
    ),
    r".*system/gpu\.": (
        "a chart exported from the W&B website",
        "export the recorded values instead of a chart: "
        "wandb.Api().run(...).history(stream='events', samples=100000).to_csv('gpu.csv')",
        "exported_chart",
    ),
}
"""What a file is whose first line begins so."""


def explain(  # noqa: PLR0911 - a kind of file each
    name: str, head: bytes, *, beside: bool, is_other: bool
) -> CodedProblem:
    """Return what a file is that nothing reads, what to do about it, and the code of this, by its name and beginning.

    A host log is wanted where it lies `beside` one of GPUs; it `is_other` where it is a log of the kind not wanted.
    """
    if is_other and beside:
        hint = f"give it as a source; with --host, {_WANTED_BESIDE}"
        return "a log of GPUs, not of a host", hint, "gpu_log_as_host"
    text = head_text(head)
    first = head.decode(errors="replace").lstrip("\ufeff").lstrip().partition("\n")[0].strip()
    if is_other:
        what = "a host log, which says nothing of GPUs"
        hint = "give the log of the GPUs as a source, and this one with --host"
        if "gpu" in first.lower():
            what = "a host log: no column says which GPU a row is of"
            hint = f"{hint}; for what it has of GPUs, {_MAP}"
        return what, hint, "host_log_as_gpu"
    # the beginning of the first line with words that a terminal can print
    shown = redact_start(first, 60).replace("\t", " ")
    if not shown.isprintable() or "\ufffd" in shown:
        shown = ""
    if not shown and name.startswith("nvstats"):
        what = "unsupported: a log that nvidia-smi daemon keeps in a form of its own"
        return what, f"print it with nvidia-smi replay -f {name} -r log.txt, give log.txt", "daemon_log"
    if before := find_line_prefix(text):
        return f"another program put {before!r} before what nvidia-smi wrote", TAKE_AWAY, "prefixed_lines"
    if beside:
        what = f"not a recognised host log (first line: {shown})" if shown else "not a text log"
        return what, _WANTED_BESIDE, "not_a_host_log"
    if not shown:
        return "not a text log", RECORDS_ONE, "not_a_gpu_log"
    known = next((said for pattern, said in _FIRST_LINES.items() if re.match(pattern, first, re.IGNORECASE)), None)
    known = _DRIVER if is_driver_message(first) else known
    if known is not None:
        message = f" ({redact_start(first, 120)})" if known[2] == "error_message" else ""
        return known[0] + message, *known[1:]
    if TrainingLog().is_training_log(head):
        hint = "give the log of the GPUs as a source, and this one with --training"
        return "a training log, which says nothing of GPUs", hint, "training_log"
    with suppress(ValueError, RecursionError):
        if isinstance(json.loads(first), dict):
            return "JSON that no known tool writes", _JSON, "unknown_json"
    return f"not a recognised GPU log (first line: {shown})", _find_option(text), "not_a_gpu_log"


def _find_option(text: str) -> str:
    """Return which option reads a text that is no known log and may be a table."""
    row = [cell.strip() for cell in text.partition("\n")[0].split(",")]
    if draft_map(text):
        return _MAP
    if len(row) > 1 and any(map(is_time_heading, row)):
        return _JSON
    if 1 < len(row) <= _MOST_CELLS and all(map(_NUMBER.fullmatch, row)):
        names = [f"column_{place + 1}" for place in range(len(row))]
        return f"{RECORDS_ONE}; if it is one without its header, {format_columns_option(names)}"
    return RECORDS_ONE
