"""Finds a run's row in a job table, and reads the run's tags from that row.

A run gets the row that names it, its folder or its job, in that order, or else the row
of the only job on its machine at that time. If several rows fit equally well, the run gets no tags.
"""

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice, product
from math import inf, prod
from pathlib import Path, PurePath
from typing import NamedTuple

from gpureport.errors import SettingsError
from gpureport.importers.clock import load_zone, local_span, parse_time
from gpureport.names import BY_COLUMN, BY_NAME, find_label
from gpureport.recording import TRACKER_KINDS, Run
from gpureport.redaction import redact_text
from gpureport.regular_files import code_system_error, read_regular_file, read_small_text

Pairs = tuple[tuple[str, str], ...]
SACCT = "sacct -aXP -S now-30days --format=JobID,JobName,User,Account,Partition,NodeList,Start,End,State"
_MOST_BYTES, _MOST_NODES, _MOST_MACHINES = 2**28, 100_000, 2_000_000
"""Maximum numbers of bytes, machines in a list, and machines in total."""
_RUN = ("run", "run_id", "run_name", "file", "log")
_START, _END = ("start", "started", "start_time"), ("end", "ended", "end_time")
_RAW_JOB = "job_id_raw"
_EMPTY = {"", "unknown", "none", "none assigned", "n/a", "null", "(null)", "nan"}
_WORD = re.compile(r"[A-Z]+s?(?![a-z])|[A-Z]?[a-z]+|\d+")
_NUMBER = re.compile(r"(?<![0-9])(?<![0-9]\.)\d+(?:_\d+)?(?![0-9A-Za-z])")
_ENDINGS = re.compile(r"(?:\.(?:csv|tsv|txt|log|out|jsonl?|xml|gz|zst|bz2|xz))+$", re.IGNORECASE)
NO_ROW, SEVERAL = "no row fits", "several rows fit equally well"
TIMES = "its times cannot be compared with those in the table"


class LabelRow(NamedTuple):
    line: int
    keys: tuple[tuple[str, str], ...]
    nodes: tuple[str, ...]
    start: tuple[int, bool] | None
    end: tuple[int, bool] | None
    tags: Pairs


class LabelMatch(NamedTuple):
    name: str
    rows: list[LabelRow]
    doubt: str


class LabelTable:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows, self.unread = _read_rows(path)
        self.matches: dict[str, LabelMatch] = {}
        self._rows_by: dict[tuple[str, str], list[LabelRow]] = defaultdict(list)
        for row in self.rows:
            for key in dict.fromkeys(row.keys):
                self._rows_by[key].append(row)

    def find_tags(self, run: Run) -> Pairs:
        # nodes are not read from params, which may name a database host
        named = [*(device.node for device in run.devices), *(find_label(run.tags, "node") or "").split(", ")]
        nodes = [shorten_node(node) for node in named if node]
        rows = sorted({row.line: row for row in self._find_rows(run, nodes)}.values())
        rows = [row for row in rows if _fits_time(run, row)] or rows
        rows = [row for row in rows if _fits_node(nodes, row)] or rows
        rows = rows[:1] if len({row.tags for row in rows}) == 1 else rows
        doubt = SEVERAL if len(rows) > 1 else ""
        if not rows:
            fits = {_fits_time(run, row) for row in self._look_up("node", nodes) if row.start is not None}
            doubt = TIMES if fits == {None} else NO_ROW
        self.matches[run.id] = LabelMatch(run.name, rows, doubt)
        if doubt:
            return ()
        # if the run names some of the job's machines, only these are kept
        own = ", ".join(node for node in rows[0].nodes if shorten_node(node) in nodes)
        return tuple((name, own if name == "node" and own else value) for name, value in rows[0].tags)

    def _find_rows(self, run: Run, nodes: list[str]) -> list[LabelRow]:
        paths = [PurePath(source.locator) for source in run.sources if source.kind not in TRACKER_KINDS]
        names = {run.id, run.name, *(source.locator.rpartition("#")[2] for source in run.sources if run.tracked)}
        tails = [PurePath(*path.parts[place:]) for path in paths for place in range(len(path.parts))]
        names |= {name for tail in tails for name in (str(tail), _ENDINGS.sub("", str(tail)))}
        folders = {str(tail.parent) for tail in tails if len(tail.parts) > 1}
        jobs = (find_label(run.params_and_tags, "job"), dict(run.params_and_tags).get("SLURM_JOB_ID"))
        stated = [job for job in jobs if job]
        named = self._look_up("run", names) or self._look_up("run", folders)
        rows = named or self._look_up("job", stated[:1]) or self._look_up("job", stated)
        if rows or any(job.replace("_", "").isdigit() for job in stated):
            # a different job on the same machine is not considered
            return rows
        shown = dict.fromkeys((run.name, *(part for path in paths for part in path.parts[-3:])))
        for number in (number for text in shown for number in _NUMBER.findall(text)):
            rows += self._look_up("job", [number]) or self._look_up("job", number.split("_"))
        # a number in a name is a job id if the time fits and the machine does not differ
        rows = [row for row in rows if _fits_time(run, row) and (_fits_node(nodes, row) or not (nodes and row.nodes))]
        return rows or [row for row in self._look_up("node", nodes) if _fits_time(run, row)]

    def _look_up(self, kind: str, keys: Iterable[str]) -> list[LabelRow]:
        return [row for key in keys for row in self._rows_by.get((kind, key), ())]


def _fits_time(run: Run, row: LabelRow) -> bool | None:
    span, zone = (run.started, run.ended), run.timezone
    if row.start is None or run.quality.synthetic_time:
        return None
    if row.start[1] != (zone is not None):
        # trackers and Prometheus use UTC, whatever the machine's zone is
        if zone in {None, "UTC", "Etc/UTC", "GMT", "Z"}:
            return None
        span = local_span(span, load_zone(str(zone)))
    return row.start[0] <= sum(span) // 2 <= (row.end or (inf,))[0]


def _fits_node(nodes: list[str], row: LabelRow) -> bool:
    return any(shorten_node(node) in nodes for node in row.nodes)


def _read_rows(path: Path) -> tuple[list[LabelRow], list[int]]:
    table = _split_cells(path)
    names = ["_".join(_WORD.findall(redact_text(name))).lower() for name in next(table, (1, []))[1]]
    if {*names}.isdisjoint((*_RUN, _RAW_JOB, *BY_NAME["job"].columns, *BY_NAME["node"].columns)):
        what = f"no column names a run, job or node (columns: {', '.join(filter(None, names[:8]))})"
        raise SettingsError(
            str(path), what, f"add a run or job_id column, or give the output of: {SACCT}", code="no_key_column"
        )
    rows, unread, machines = [], [], 0
    for line, cells in table:
        if len(cells) != len(names):
            unread += [line] if any(cell.strip() for cell in cells) else []
            continue
        texts = [(name, cell.strip()) for name, cell in zip(names, cells, strict=True)]
        said = {name: text for name, text in reversed(texts) if text.lower() not in _EMPTY}
        row = _make_row(line, dict(reversed(said.items())))
        rows += [row] if row else []
        machines += len(row.nodes) if row else 0
        if machines > _MOST_MACHINES:
            what = f"the jobs up to line {line} ran on more than {_MOST_MACHINES:,} machines in total"
            raise SettingsError(
                str(path), what, "give a table that covers fewer days (sacct -S and -E)", code="too_many_machines"
            )
    return rows, unread


def _split_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        content = read_regular_file(path, most=_MOST_BYTES) if path.is_file() else read_small_text(path).encode()
        lines = content.decode("utf-8-sig", errors="replace").split("\n")
        delimiter = max("|\t;,", key=lines[0].count)
        # sacct does not quote cells, but a job name may contain a quotation mark
        table = csv.reader(lines, delimiter=delimiter, quotechar=None if delimiter == "|" else '"')
        yield from ((table.line_num, cells) for cells in table)
    except (OSError, csv.Error) as error:
        what = getattr(error, "strerror", "") or str(error)
        hint = getattr(error, "hint", f"give the output of: {SACCT}")
        code = code_system_error(error, "cannot_read") if isinstance(error, OSError) else "damaged_table"
        raise SettingsError(str(path), what, hint, code=code) from error


def _make_row(line: int, values: dict[str, str]) -> LabelRow | None:
    """Return the facts in a line, or None for a job step such as `4411.batch`."""
    run, start, end = (next((values[name] for name in names if name in values), "") for names in (_RUN, _START, _END))
    tags: dict[str, str] = {}
    for name, text in values.items():
        if name and name not in {*_RUN, *_START, *_END, _RAW_JOB}:
            tags.setdefault(BY_COLUMN[name].name if name in BY_COLUMN else name, text)
    # Slurm appends the name of the user who cancelled a job
    tags |= {name: text.partition(" by ")[0] for name, text in tags.items() if name == "job_state"}
    job, nodes = tags.get("job", ""), expand_node_list(tags.get("node", ""))
    if re.fullmatch(r"[\d_+]+\.\w+", job):
        return None
    # a component of a heterogeneous job may have the number of the whole job
    jobs = (job, job.partition("+")[0], values.get(_RAW_JOB, ""))
    keys = [*(("job", each) for each in jobs if each), *(("node", shorten_node(node)) for node in nodes)]
    keys += [("run", str(PurePath(run)))] if run else []
    return LabelRow(line, tuple(keys), nodes, parse_time(start), parse_time(end), tuple(tags.items()))


@lru_cache(1024)
def expand_node_list(text: str) -> tuple[str, ...]:
    """Expand a Slurm list of machines (`gpu[01-04,07],login1`) unless it is too long."""
    parts: list[str] = re.findall(r"(?:[^\s,;\[\]]|\[[^\[\]]*\])+", text)
    nodes: list[str] = []
    for part in parts:
        # pieces from within brackets have odd positions
        pieces = enumerate(re.split(r"\[([^\[\]]*)\]", part))
        choices = [[*islice(_list_numbers(piece), _MOST_NODES + 1)] if n % 2 else [piece] for n, piece in pieces]
        if len(nodes) + prod(map(len, choices)) > _MOST_NODES:
            return tuple(parts)
        nodes += map("".join, product(*choices))
    return tuple(nodes)


def _list_numbers(text: str) -> Iterator[str]:
    for item in map(str.strip, text.split(",")):
        ends = re.fullmatch(r"(\d{1,9})-(\d{1,9})", item)
        if ends is None or int(ends[2]) - int(ends[1]) > _MOST_NODES:
            yield item
        else:
            yield from (str(number).zfill(len(ends[1])) for number in range(int(ends[1]), int(ends[2]) + 1))


def shorten_node(name: str) -> str:
    """Return a machine's name in lower case without its domain, since tools differ."""
    return name.lower() if re.fullmatch(r"[\d.]+", name) else name.lower().partition(".")[0]
