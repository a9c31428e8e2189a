"""What files say of a run: labels beside its log, and the row of a table of jobs that is its own.

A table is what `sacct -P` prints, or any table with a heading. A run gets the row that names it or its job, else that
of the one job on its machine at its time; what fits several rows equally well is never guessed.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import islice, product
from math import prod
from pathlib import Path, PurePath
from typing import Any

from gpureport import label_tags
from gpureport.errors import SettingsError
from gpureport.importers.clock import load_zone, local_span
from gpureport.importers.columns import parse_time
from gpureport.importers.protocol.importer import Labels
from gpureport.importers.source_file import RawFile, decompressed_blocks
from gpureport.importers.source_text import decode_utf8
from gpureport.json_text import parse_json
from gpureport.label_tags import find_label, override_pairs
from gpureport.record_folder import LABEL_FILE
from gpureport.recording import TRACKER_KINDS, Run
from gpureport.redaction import redact_text
from gpureport.regular_files import UnsafeFileError, read_small_text

Pairs = tuple[tuple[str, str], ...]
SACCT = "sacct -aXP -S now-30days --format=JobID,JobName,User,Account,Partition,NodeList,Start,End,State"
"""The command that prints such a table; `-S` and `-E` choose the days."""
_LABELS = {"name", "step", "params", "tags"}
_MOST_BYTES = 2**20
_MOST_NODES, _MOST_MACHINES = 100_000, 2_000_000
"""Machines of one list, and of all rows together: a month of the largest clusters has a tenth of either."""
_RUN = ("run", "run_id", "run_name", "file", "log")
_START, _END = ("start", "started", "start_time"), ("end", "ended", "end_time")
_RAW_JOB = "job_id_raw"
_KEYS = {*_RUN, *_START, *_END, _RAW_JOB}
_EMPTY = {"", "unknown", "none", "none assigned", "n/a", "null", "(null)", "nan"}
"""Cells that say nothing, in lower case: Slurm writes most of them."""
_WORD = re.compile(r"[A-Z]+s?(?![a-z])|[A-Z]?[a-z]+|\d+")
_NUMBER = re.compile(r"(?<![0-9])(?<![0-9]\.)\d+(?:_\d+)?(?![0-9A-Za-z])")
_ENDINGS = re.compile(r"(?:\.(?:csv|tsv|txt|log|out|jsonl?|xml|gz|zst|bz2|xz))+$", re.IGNORECASE)
_SHOWN_FOLDERS = 3
"""Parts at the end of a log's path that may hold the number of a job."""
_UTC = {"UTC", "Etc/UTC", "GMT", "Z"}
"""Zones that logs are kept in whatever the clock of their machine shows."""


def read_label_files(log: Path, files: Iterable[Path]) -> tuple[Labels, list[str]]:
    """Return what files of labels beside a log say, and what to note of those that are none; the later ones win.

    A file holds an object with name, step, params and tags, each of which may be missing. Any other content is noted
    of a file whose name says that it was meant.
    """
    labels, notes = Labels(), []
    for path in filter(Path.is_file, files):
        content: Any = None
        fault = "not an object with name, step, params and tags, and nothing else"
        try:
            if path.stat().st_size > _MOST_BYTES:
                fault = "too large"
            else:
                content = parse_json(path.read_text(encoding="utf-8-sig"), parse_number=str)
        except (OSError, ValueError, RecursionError):
            fault = "damaged"
        found = _parse_labels(content) if content and isinstance(content, dict) else None
        if found is not None:
            labels = Labels(
                name=found.name or labels.name,
                step=found.step or labels.step,
                params=override_pairs(labels.params, found.params),
                tags=override_pairs(labels.tags, found.tags),
            )
        elif path.name in {LABEL_FILE, f"{log.name}.json"}:
            notes.append(f"{path.name} is not read as labels: it is {fault}.")
    return labels, notes


def _parse_labels(content: Mapping[str, Any]) -> Labels | None:
    """Return labels; None where a key is unknown, or a value is neither a text, a number nor a truth value."""
    params, tags = content.get("params", {}), content.get("tags", {})
    if set(content) - _LABELS or not isinstance(params, dict) or not isinstance(tags, dict):
        return None
    if not all(
        isinstance(value, str | bool | None)
        for value in (content.get("name"), content.get("step"), *params.values(), *tags.values())
    ):
        return None

    def text(value: object) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value or "")

    def pairs(values: Mapping[str, Any]) -> Pairs:
        return tuple((name, text(value)) for name, value in values.items() if name and text(value))

    return Labels(
        name=text(content.get("name")) or None,
        step=text(content.get("step")) or None,
        params=pairs(params),
        tags=pairs(tags),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRow:
    """What a line of a table says of one job or run; empty or None is what it does not say.

    The jobs are the numbers of the job: `4411`, of a task of an array `4411_7`, and the number under which Slurm runs
    that. The run is a name, an id or a file.
    """

    line: int
    run: str = ""
    jobs: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    start: tuple[int, bool] | None = None
    end: tuple[int, bool] | None = None
    tags: Pairs = ()


def read_label_rows(path: Path) -> tuple[list[LabelRow], list[int]]:
    """Return the rows of a table, and the lines that have another number of cells than its heading.

    Columns whose meaning is known become the tags of `label_tags`, every other one a tag of its own name.

    Raises:
        SettingsError: when the file cannot be read, names too many machines, or no column names a run, a job, or a
            machine and a time.
    """
    table = _split_cells(path)
    names = ["_".join(_WORD.findall(redact_text(name))).lower() for name in next(table, (1, []))[1]]
    nodes, jobs = (label_tags.BY_NAME[name].columns for name in ("node", "job"))
    has_place = any(name in nodes for name in names) and any(name in _START for name in names)
    if not has_place and not any(name in {*_RUN, *jobs, _RAW_JOB} for name in names):
        shown = ", ".join(filter(None, names[:8])) or "none"
        what = f"no column names a run, a job, or a node and a start (columns: {shown})"
        raise SettingsError(
            str(path), what, f"add one named run or job_id, or give what this prints: {SACCT}", code="no_key_column"
        )
    rows, unread, machines = [], [], 0
    for line, cells in table:
        if len(cells) == len(names):
            rows.append(_make_row(line, zip(names, cells, strict=True)))
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
    file = RawFile(path)
    again = f"give what this prints: {SACCT}"
    try:
        # of a pipe the size is not known
        blocks = decompressed_blocks(file, 2**20) if path.is_file() else iter([read_small_text(path).encode()])
        text = b"".join(decode_utf8(blocks)).decode(errors="replace").removeprefix("\ufeff")
    except UnsafeFileError as error:
        raise SettingsError(str(path), str(error.strerror), error.hint, code="not_a_regular_file") from error
    except OSError as error:
        code = "no_such_file" if isinstance(error, FileNotFoundError) else "cannot_read"
        raise SettingsError(str(path), error.strerror or "cannot be read", again, code=code) from error
    if file.account.damage:
        raise SettingsError(str(path), file.account.damage, "copy or compress it again", code="damaged_archive")
    lines = text.split("\n")
    delimiter = max("|\t;,", key=lines[0].count)
    # sacct quotes nothing, and a name of a job may hold a quote
    table = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE if delimiter == "|" else csv.QUOTE_MINIMAL)
    try:
        for cells in table:
            yield table.line_num, cells
    except csv.Error as error:
        what = f"line {table.line_num + 1} cannot be read: {error}"
        raise SettingsError(str(path), what, again, code="damaged_table") from error


def _make_row(line: int, cells: Iterable[tuple[str, str]]) -> LabelRow:
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

    def first(names: Iterable[str]) -> str:
        return next((values[name] for name in names if name in values), "")

    job = tags.get("job", "")
    return LabelRow(
        line=line,
        run=first(_RUN),
        # a part of a heterogeneous job may be called by the number of the whole
        jobs=tuple(filter(None, dict.fromkeys((job, job.partition("+")[0], values.get(_RAW_JOB, ""))))),
        nodes=expand_node_list(tags.get("node", "")),
        start=parse_time(first(_START)),
        end=parse_time(first(_END)),
        tags=tuple(tags.items()),
    )


def _fold_steps(rows: Sequence[LabelRow]) -> Iterator[LabelRow]:
    """Yield the rows without those of steps, such as `4411.batch`; one stands for a job that has no row of its own."""
    known = {row.jobs[0] for row in rows if row.jobs and "." not in row.jobs[0]}
    for row in rows:
        job, dot, _ = row.jobs[0].partition(".") if row.jobs else ("", "", "")
        if not dot:
            yield row
        elif job not in known:
            known.add(job)
            # the name of a step is that of its program
            tags = {name: value for name, value in row.tags if name != "job_name"} | {"job": job}
            yield replace(row, jobs=(job,), tags=tuple(tags.items()))


class Doubt(Enum):
    """Why a run has no row."""

    NO_ROW = "no row fits"
    SEVERAL = "several rows fit equally well"
    TIMES = "its times cannot be compared with those of the table"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMatch:
    """The row of a run and its tags, or why it has none, and the rows that fit equally well where several do."""

    row: LabelRow | None = None
    doubt: Doubt | None = None
    rows: tuple[LabelRow, ...] = ()
    tags: Pairs = ()


class LabelTable:
    """A table, and which of its rows belong to the runs that were looked up in it, by the runs' ids."""

    def __init__(self, path: Path) -> None:
        """Read the table; errors as for `read_label_rows`."""
        self.path = path
        self.rows, self.unread = read_label_rows(path)
        self.matches: dict[str, tuple[str, LabelMatch]] = {}
        self._runs: dict[str, list[LabelRow]] = {}
        self._jobs: dict[str, list[LabelRow]] = {}
        self._nodes: dict[str, list[LabelRow]] = {}
        for row in self.rows:
            names = [str(PurePath(row.run))] if row.run else []
            nodes = map(shorten_node, row.nodes)
            for index, keys in ((self._runs, names), (self._jobs, row.jobs), (self._nodes, nodes)):
                for key in dict.fromkeys(keys):
                    index.setdefault(key, []).append(row)

    def find_tags(self, run: Run) -> Pairs:
        """Return what the table labels a run with; nothing where no row is its own."""
        match = self._match(run, _RunTraces(run))
        self.matches[run.id] = run.name, match
        return match.tags

    def _match(self, run: Run, traces: "_RunTraces") -> LabelMatch:
        if named := [row for name in traces.names for row in self._runs.get(name, ())]:
            return _choose(named, traces)
        jobs = (find_label(run.params_and_tags, "job"), dict(run.params_and_tags).get("SLURM_JOB_ID"))
        stated = [job for job in jobs if job]
        for job in stated:
            if job in self._jobs:
                return _choose(self._jobs[job], traces)
        if any(job.replace("_", "").isdigit() for job in stated):
            # another job on the same machine is not this one
            return LabelMatch(doubt=Doubt.NO_ROW)
        # a number in a name is that of a job where the time says so, and the machine nothing else
        numbered = [
            row
            for number in traces.numbers
            for part in ([number] if number in self._jobs else number.split("_"))
            for row in self._jobs.get(part, ())
            if traces.fit_time(row) and (traces.fit_node(row) or not (traces.nodes and row.nodes))
        ]
        if numbered:
            return _choose(numbered, traces)
        dated = [row for node in traces.nodes for row in self._nodes.get(node, ()) if row.start is not None]
        if dated and all(traces.span_beside(row) is None for row in dated):
            return LabelMatch(doubt=Doubt.TIMES)
        return _choose(filter(traces.fit_time, dated), traces)


class _RunTraces:
    """What a run shows of the job it belongs to: its names, numbers in them, its machines, and when it ran."""

    def __init__(self, run: Run) -> None:
        self._run = run
        tracked = [source.locator.rpartition("#")[2] for source in run.sources if source.kind in TRACKER_KINDS]
        paths = [PurePath(source.locator) for source in run.sources if source.kind not in TRACKER_KINDS]
        tails = [PurePath(*path.parts[place:]) for path in paths for place in range(len(path.parts))]
        self.names = {run.id, run.name, *tracked, *map(str, tails), *(_ENDINGS.sub("", str(tail)) for tail in tails)}
        self.names |= {str(tail.parent) for tail in tails if len(tail.parts) > 1}
        shown = [run.name, *(part for path in paths for part in path.parts[-_SHOWN_FOLDERS:])]
        self.numbers = [number for text in dict.fromkeys(shown) for number in _NUMBER.findall(text)]
        # a param may name the host of a database
        nodes = [*(device.node for device in run.devices), *(find_label(run.tags, "node") or "").split(", ")]
        self.nodes = dict.fromkeys(shorten_node(node) for node in nodes if node)

    def span_beside(self, row: LabelRow) -> tuple[int, int] | None:
        """Return when the run was in the time base of a row; None where the two cannot be compared."""
        span, zone = (self._run.started, self._run.ended), self._run.timezone
        if row.start is None or self._run.quality.synthetic_time:
            return None
        if row.start[1] == (zone is not None):
            return span
        # trackers and Prometheus keep times in UTC, which says nothing of the machine
        return None if zone is None or zone in _UTC else local_span(span, load_zone(zone))

    def fit_time(self, row: LabelRow) -> bool:
        """Return whether the middle of the run lies within a job; False where their times cannot be compared."""
        span = self.span_beside(row)
        if span is None or row.start is None:
            return False
        middle = (span[0] + span[1]) // 2
        return row.start[0] <= middle and (row.end is None or middle <= row.end[0])

    def fit_node(self, row: LabelRow) -> bool:
        """Return whether a job ran on a machine of the run."""
        return any(shorten_node(node) in self.nodes for node in row.nodes)


def _choose(rows: Iterable[LabelRow], traces: _RunTraces) -> LabelMatch:
    """Return the one row, after time and machine had their say where there are several."""
    left = sorted({row.line: row for row in rows}.values(), key=lambda row: row.line)
    for fits in (traces.fit_time, traces.fit_node):
        if len(left) > 1:
            left = list(filter(fits, left)) or left
    if not left:
        return LabelMatch(doubt=Doubt.NO_ROW)
    if any(row.tags != left[0].tags for row in left):
        return LabelMatch(doubt=Doubt.SEVERAL, rows=tuple(left))
    # of the machines of a job only those that the run is of, where it names some
    own = ", ".join(node for node in left[0].nodes if shorten_node(node) in traces.nodes)
    tags = tuple((name, own if name == "node" and own else value) for name, value in left[0].tags)
    return LabelMatch(row=left[0], tags=tags)


@lru_cache(1024)
def expand_node_list(text: str) -> tuple[str, ...]:
    """Return the machines of a list as Slurm prints it, `gpu[01-04,07],login1`; too long a list stays as it is."""
    parts: list[str] = re.findall(r"(?:[^\s,;\[\]]|\[[^\[\]]*\])+", text)
    nodes = tuple(islice((node for part in parts for node in _expand_part(part)), _MOST_NODES + 1))
    return nodes if len(nodes) <= _MOST_NODES else tuple(parts)


def _expand_part(part: str) -> Iterator[str]:
    # what stands in brackets is at the odd places
    pieces = re.split(r"\[([^\[\]]*)\]", part)
    choices = [
        list(islice(_list_numbers(piece), _MOST_NODES + 1)) if n % 2 else [piece] for n, piece in enumerate(pieces)
    ]
    yield from map("".join, product(*choices)) if prod(map(len, choices)) <= _MOST_NODES else [part]


def _list_numbers(text: str) -> Iterator[str]:
    """Yield the numbers of a bracket; zeros that lead a number stay."""
    for item in map(str.strip, text.split(",")):
        ends = re.fullmatch(r"(\d{1,9})-(\d{1,9})", item)
        if ends is None or int(ends[2]) - int(ends[1]) > _MOST_NODES:
            yield item
        else:
            yield from (str(number).zfill(len(ends[1])) for number in range(int(ends[1]), int(ends[2]) + 1))


def shorten_node(name: str) -> str:
    """Return a machine's name in lower case without its domain, as one tool writes it and another does not."""
    return name.lower() if re.fullmatch(r"[\d.]+", name) else name.lower().partition(".")[0]
