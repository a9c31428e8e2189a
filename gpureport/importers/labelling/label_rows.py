"""The rows of a table of jobs or runs: what `sacct -P` prints, or any table with a heading.

Columns whose meaning is known become the tags of `label_tags`, every other one a tag under its own name in snake_case:
a person chose the columns.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpureport import label_tags
from gpureport.errors import SettingsError
from gpureport.importers.labelling.node_lists import expand_node_list
from gpureport.importers.source_file import RawFile, decompressed_blocks
from gpureport.importers.source_text import decode_utf8
from gpureport.importers.values.timestamps import Moment, parse_timestamp
from gpureport.redaction import redact_text
from gpureport.regular_files import UnsafeFileError, read_small_text

SACCT = "sacct -aXP -S now-30days --format=JobID,JobName,User,Account,Partition,NodeList,Start,End,State"
"""The command that prints such a table; `-S` and `-E` choose the days."""
_DELIMITERS = "|\t;,"
_BLOCK = 2**20
_MOST_MACHINES = 2_000_000
"""Machines that the rows name together: a month of a large cluster has a tenth of it."""
_RUN = ("run", "run_id", "run_name", "file", "log")
_START = ("start", "started", "start_time")
_END = ("end", "ended", "end_time")
_RAW_JOB = ("job_id_raw",)
_KEYS = {*_RUN, *_START, *_END, *_RAW_JOB}
_EMPTY = {"", "unknown", "none", "none assigned", "n/a", "null", "(null)", "nan"}
"""Cells that say nothing, in lower case: Slurm writes most of them."""
_WORD = re.compile(r"[A-Z]+s?(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRow:
    """What a table says of one job or run.

    Attributes:
        line: number of its line in the file.
        run: name, id or file of the run; empty where the table has no such column.
        jobs: numbers of the job: `4411`, of a task of an array `4411_7`, and the number under which Slurm runs that.
        nodes: machines it ran on.
        start: when it began; None where it did not, or the table does not say.
        end: when it ended; None where it goes on, or the table does not say.
        tags: what its run is labelled with.
    """

    line: int
    run: str = ""
    jobs: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    start: Moment | None = None
    end: Moment | None = None
    tags: tuple[tuple[str, str], ...] = ()


def read_label_rows(path: Path) -> tuple[list[LabelRow], list[int]]:
    """Return the rows of a table, and the lines that have another number of cells than its heading.

    A step of a job (`4411.batch`) stands for the job only where the job has no row of its own.

    Raises:
        SettingsError: when the file cannot be read, names too many machines, or no column names a run, a job, or a
            machine and a time.
    """
    table = _split_cells(path)
    _, heading = next(table, (1, []))
    names = [_snake_case(name) for name in heading]
    _check_columns(names, path)
    rows, unread, machines = [], [], 0
    for line, cells in table:
        if len(cells) == len(names):
            rows.append(_make_row(line, list(zip(names, cells, strict=True))))
            machines += len(rows[-1].nodes)
            if machines > _MOST_MACHINES:
                what = f"the jobs up to line {line} ran on more than {_MOST_MACHINES:,} machines together"
                raise SettingsError(
                    str(path), what, "give a table of fewer days (sacct -S and -E)", code="too_many_machines"
                )
        elif any(cell.strip() for cell in cells):
            unread.append(line)
    return list(_fold_steps(rows)), unread


def _split_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line."""
    lines = _read_text(path).split("\n")
    delimiter = max(_DELIMITERS, key=lines[0].count)
    # sacct quotes nothing, and a name of a job may hold a quote
    table = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE if delimiter == "|" else csv.QUOTE_MINIMAL)
    try:
        for cells in table:
            yield table.line_num, cells
    except csv.Error as error:
        what = f"line {table.line_num + 1} cannot be read: {error}"
        raise SettingsError(str(path), what, f"give what this prints: {SACCT}", code="damaged_table") from error


def _read_text(path: Path) -> str:
    file = RawFile(path)
    try:
        # of a pipe the size is not known
        blocks = decompressed_blocks(file, _BLOCK) if path.is_file() else iter([read_small_text(path).encode()])
        text = b"".join(decode_utf8(blocks)).decode(errors="replace").removeprefix("\ufeff")
    except UnsafeFileError as error:
        raise SettingsError(str(path), str(error.strerror), error.hint, code="not_a_regular_file") from error
    except OSError as error:
        raise SettingsError(
            str(path),
            error.strerror or "cannot be read",
            f"give what this prints: {SACCT}",
            code="no_such_file" if isinstance(error, FileNotFoundError) else "cannot_read",
        ) from error
    if file.account.damage:
        raise SettingsError(str(path), file.account.damage, "copy or compress it again", code="damaged_archive")
    return text


def _snake_case(heading: str) -> str:
    return "_".join(_WORD.findall(redact_text(heading))).lower()


def _check_columns(names: Sequence[str], path: Path) -> None:
    nodes = label_tags.BY_NAME["node"].columns
    jobs = (*label_tags.BY_NAME["job"].columns, *_RAW_JOB)
    has_place = any(name in nodes for name in names) and any(name in _START for name in names)
    if not has_place and not any(name in (*_RUN, *jobs) for name in names):
        shown = ", ".join(filter(None, names[:8])) or "none"
        what = f"no column names a run, a job, or a node and a start (columns: {shown})"
        raise SettingsError(
            str(path), what, f"add one named run or job_id, or give what this prints: {SACCT}", code="no_key_column"
        )


def _make_row(line: int, cells: Sequence[tuple[str, str]]) -> LabelRow:
    values: dict[str, str] = {}
    for name, cell in cells:
        if (text := cell.strip()).lower() not in _EMPTY:
            values.setdefault(name, text)
    tags: dict[str, str] = {}
    for name, text in values.items():
        if name and name not in _KEYS:
            known = label_tags.BY_COLUMN.get(name)
            tags.setdefault(known.name if known else name, text)
    if "job_state" in tags:
        # Slurm adds who cancelled a job
        tags["job_state"] = tags["job_state"].partition(" by ")[0]
    job = tags.get("job", "")
    # a part of a heterogeneous job may be called by the number of the whole
    jobs = dict.fromkeys((job, job.partition("+")[0], _first(values, _RAW_JOB)))
    return LabelRow(
        line=line,
        run=_first(values, _RUN),
        jobs=tuple(filter(None, jobs)),
        nodes=expand_node_list(tags.get("node", "")),
        start=parse_timestamp(_first(values, _START)),
        end=parse_timestamp(_first(values, _END)),
        tags=tuple(tags.items()),
    )


def _first(values: Mapping[str, str], names: Sequence[str]) -> str:
    return next((values[name] for name in names if name in values), "")


def _fold_steps(rows: Sequence[LabelRow]) -> Iterator[LabelRow]:
    """Yield the rows without those of steps; the first step of a job that has no row is called as the job."""
    known = {row.jobs[0] for row in rows if row.jobs and "." not in row.jobs[0]}
    for row in rows:
        if not row.jobs or "." not in row.jobs[0]:
            yield row
            continue
        job = row.jobs[0].partition(".")[0]
        if job not in known:
            known.add(job)
            # the name of a step is that of its program
            tags = {name: value for name, value in row.tags if name != "job_name"} | {"job": job}
            yield replace(row, jobs=(job,), tags=tuple(tags.items()))
