"""Files that no importer recognises: what they are instead, and what to do."""

import json
import re

from gpureport.errors import CodedProblem, SourceError
from gpureport.importers.account import is_driver_message
from gpureport.importers.decoding.pieces import head_text
from gpureport.importers.note_text import format_columns_option
from gpureport.importers.text import line_prefixes
from gpureport.recording_advice import RECORDS_ONE
from gpureport.redaction import redact_start

_RECORD_AGAIN = "fix this on the machine until nvidia-smi by itself shows a table, then record again"
_FIELD = re.compile(r'Field "[^"]*" is not a valid field to query')
_ABSENT = re.compile(r".*nvidia-smi.*(?:command not found|not found|not recognized)", re.IGNORECASE)
_LFS = "version https://git-lfs.github.com/"
_WANDB = (
    "export the recorded values instead of a chart: "
    "wandb.Api().run(...).history(stream='events', samples=100000).to_csv('gpu.csv')"
)
_TRAINING = "give the log of the GPUs as a source, and this one with --training"
_SHOWN, _BEGINNING = 120, 60
"""Characters of a message that are shown."""
_JSON = "write it as a CSV with a header and one column per metric: --source-kind mapped prints a map for that"
_WANTED_BESIDE = (
    "give what sar, sadf -d, mpstat, vmstat -t, pidstat or top -b print, or a CSV with a timestamp and cpu_percent "
    f"({RECORDS_ONE})"
)
_GPU_LOG_AS_HOST = f"give it as a source; with --host, {_WANTED_BESIDE}"
_HOST_LOG_AS_GPU = "give the log of the GPUs as a source, and this one with --host"
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?: ?[%A-Za-z]+)?", re.ASCII)
_MOST_CELLS = 50
"""Cells of a line of numbers that may be a query without its header."""


def _recognise_other_file(text: str) -> CodedProblem | None:
    """Return what a text that is not a GPU log is, and what to do about it; None when that is unknown.

    Args:
        text: its beginning.
    """
    first = text.lstrip("\ufeff \t\r\n").partition("\n")[0].strip()
    said = f"an error message, not a log ({redact_start(first, _SHOWN)})"
    if _FIELD.match(first):
        hint = "leave that field out of the query (nvidia-smi --help-query-gpu lists the fields the driver knows)"
        return said, hint, "error_message"
    if is_driver_message(first) or _ABSENT.match(first):
        return said, _RECORD_AGAIN, "error_message"
    if first.startswith(_LFS):
        return "a Git LFS pointer, not the file itself", "fetch the file with git lfs pull", "git_lfs_pointer"
    if "system/gpu." in first and "," in first:
        return "a chart exported from the W&B website", _WANDB, "exported_chart"
    return _recognise_script_output(first, text)


def _recognise_script_output(first: str, text: str) -> CodedProblem | None:
    """Return what a table or JSON that a script wrote is."""
    from gpureport.importers.training import TrainingLog  # noqa: PLC0415 - most logs are known

    if TrainingLog().is_training_log(text.encode()):
        return "a training log, which says nothing of GPUs", _TRAINING, "training_log"
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):
        return None
    return ("JSON that no known tool writes", _JSON, "unknown_json") if isinstance(found, dict) else None


def explain_unsupported_file(source: str, name: str, head: bytes, *, beside: bool, other: object) -> SourceError:
    """Return why a file is no known log.

    Args:
        source: what a person called it.
        name: its name.
        head: the beginning of its text.
        beside: whether a host log is wanted, not one of GPUs.
        other: the importer of the other kind that recognises it, or None.
    """
    if other:
        what = "a log of GPUs, not of a host" if beside else "a host log, which says nothing of GPUs"
        return SourceError(
            source,
            what,
            _GPU_LOG_AS_HOST if beside else _HOST_LOG_AS_GPU,
            code="gpu_log_as_host" if beside else "host_log_as_gpu",
        )
    first = _first_line(head)
    if not first and name.startswith("nvstats"):
        what = "unsupported: a log that nvidia-smi daemon keeps in a form of its own"
        return SourceError(
            source, what, f"print it with nvidia-smi replay -f {name} -r log.txt, give log.txt", code="daemon_log"
        )
    if before := line_prefixes.find_line_prefix(head_text(head)):
        return SourceError(
            source,
            f"another program put {before!r} before what nvidia-smi wrote",
            line_prefixes.HINT,
            code="prefixed_lines",
        )
    if not beside and first and (known := _recognise_other_file(head_text(head))):
        what, hint, code = known
        return SourceError(source, what, hint, code=code)
    kind = "host" if beside else "GPU"
    what = f"not a recognised {kind} log (first line: {first})" if first else "not a text log"
    if first and not beside:
        return _explain_unmapped_table(source, what, head)
    return SourceError(
        source, what, _WANTED_BESIDE if beside else RECORDS_ONE, code="not_a_host_log" if beside else "not_a_gpu_log"
    )


def _explain_unmapped_table(source: str, what: str, head: bytes) -> SourceError:
    """Return that a text is no known log, and which option reads it where it may be a table."""
    from gpureport.importers.tools.mapped import draft_map  # noqa: PLC0415 - few files need it

    if draft_map(head_text(head)):
        return SourceError(
            source, what, "--source-kind mapped prints a map to complete and give with --map", code="not_a_gpu_log"
        )
    names = [f"column_{place + 1}" for place in range(_count_number_cells(head))]
    without = f"; if it is one without its header, {format_columns_option(names)}" if names else ""
    return SourceError(source, what, RECORDS_ONE + without, code="not_a_gpu_log")


def _count_number_cells(head: bytes) -> int:
    """Return how many cells the first line has where all are numbers, with a unit or without; else 0."""
    row = [cell.strip() for cell in head_text(head).partition("\n")[0].split(",")]
    return len(row) if 1 < len(row) <= _MOST_CELLS and all(map(_NUMBER.fullmatch, row)) else 0


def _first_line(head: bytes) -> str:
    """Return the beginning of the first line with words that a terminal can print, empty for binary data."""
    text = head.decode("utf-8", errors="replace").lstrip("\ufeff").lstrip()
    line = redact_start(text.partition("\n")[0].strip(), _BEGINNING).replace("\t", " ")
    return line if line.isprintable() and "\ufffd" not in line else ""
