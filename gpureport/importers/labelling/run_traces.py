"""What a run shows of the job it belongs to: its names, numbers in them, its machines, and when it ran."""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from gpureport.importers.labelling.label_rows import LabelRow
from gpureport.importers.labelling.node_lists import shorten_node
from gpureport.importers.timebase import zones
from gpureport.label_tags import find_label
from gpureport.recording import TRACKER_KINDS, Run

_UTC = {"UTC", "Etc/UTC", "GMT", "Z"}
"""Zones that logs are kept in whatever the clock of their machine shows."""
_NUMBER = re.compile(r"(?<![0-9])(?<![0-9]\.)\d+(?:_\d+)?(?![0-9A-Za-z])")
_SHOWN_FOLDERS = 3
"""Parts at the end of a log's path that may hold the number of a job."""
_EXTENSIONS = re.compile(r"(?:\.(?:csv|tsv|txt|log|out|jsonl?|xml|gz|zst|bz2|xz))+$", re.IGNORECASE)

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTraces:
    """What can be compared with the rows of a table.

    Attributes:
        names: what a row may call the run: its id, its name, its files and folders.
        jobs: numbers of its job, where a tag or param states one.
        texts: names that may hold the number of its job.
        nodes: machines that its devices or tags name, shortened.
        utc: its first and last time in UTC, in microseconds; None where its zone is not known.
        local: the same by the clock of its machine; None where that is not known.
    """

    names: frozenset[str]
    jobs: tuple[str, ...]
    texts: tuple[str, ...]
    nodes: tuple[str, ...]
    utc: Span | None
    local: Span | None

    def span_beside(self, row: LabelRow) -> Span | None:
        """Return when the run was in the time base of a row; None where the two cannot be compared."""
        if row.start is None:
            return None
        return self.utc if row.start.utc else self.local

    def list_numbers(self, known: Container[str]) -> Iterator[str]:
        """Yield the numbers in its names that are known; of an array `4411_7` the whole before its parts."""
        for text in self.texts:
            for number in _NUMBER.findall(text):
                yield from (each for each in ([number] if number in known else number.split("_")) if each in known)


def find_traces(run: Run) -> RunTraces:
    """Return what a run shows of its job."""
    stated = (find_label(run.params_and_tags, "job"), dict(run.params_and_tags).get("SLURM_JOB_ID"))
    paths = [PurePath(source.locator) for source in run.sources if source.kind not in TRACKER_KINDS]
    nodes = [node for device in run.devices if (node := device.node)]
    # a param may name the host of a database
    nodes += (find_label(run.tags, "node") or "").split(", ")
    utc, local = _find_spans(run)
    return RunTraces(
        names=frozenset(_list_names(run, paths)),
        jobs=tuple(dict.fromkeys(filter(None, stated))),
        texts=tuple(dict.fromkeys((run.name, *(part for path in paths for part in path.parts[-_SHOWN_FOLDERS:])))),
        nodes=tuple(dict.fromkeys(shorten_node(node) for node in nodes if node)),
        utc=utc,
        local=local,
    )


def _list_names(run: Run, paths: list[PurePath]) -> Iterator[str]:
    yield from (run.id, run.name)
    yield from (source.locator.rpartition("#")[2] for source in run.sources if source.kind in TRACKER_KINDS)
    for path in paths:
        for place in range(len(path.parts)):
            tail = PurePath(*path.parts[place:])
            yield from (str(tail), _EXTENSIONS.sub("", str(tail)))
            if len(tail.parts) > 1:
                yield str(tail.parent)


def _find_spans(run: Run) -> tuple[Span | None, Span | None]:
    """Return when a run was, in UTC and by the clock of its machine; None for what is not known."""
    span = (run.started, run.ended)
    if run.quality.synthetic_time:
        return None, None
    if run.timezone is None:
        return None, span
    # trackers and Prometheus keep times in UTC, which says nothing of the machine
    return span, None if run.timezone in _UTC else zones.local_span(span, zones.load_zone(run.timezone))
