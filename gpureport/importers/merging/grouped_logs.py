"""Runs that logs were grouped into so far, and which of them another log can belong to."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpureport.importers.merging.log_survey import LogSurvey
from gpureport.importers.merging.span_index import SpanIndex
from gpureport.recording import Device

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True, eq=False)
class LogGroup:
    """Logs of one run.

    Attributes:
        main: the log whose rows make the series.
        companions: logs that add metrics to these rows, or further GPUs.
    """

    main: LogSurvey
    companions: list[LogSurvey] = field(default_factory=list)

    @property
    def logs(self) -> list[LogSurvey]:
        """All its logs, the main one first."""
        return [self.main, *self.companions]

    @property
    def gpus(self) -> tuple[Device, ...]:
        """The GPUs of all its logs."""
        return tuple(device for each in self.logs for device in each.gpus)


class GroupedLogs:
    """Runs in the order in which they were made; a search looks at those of the same time and like GPUs alone."""

    def __init__(self) -> None:
        self.groups: list[LogGroup] = []
        self._places: dict[LogGroup, int] = {}
        self._all = SpanIndex()
        self._by_uuid: dict[str | None, SpanIndex] = defaultdict(SpanIndex)
        self._by_ids: dict[frozenset[str], SpanIndex] = defaultdict(SpanIndex)
        self._recorded: dict[Path, set[int]] = defaultdict(set)

    def add(self, group: LogGroup) -> None:
        """Add a run of one log."""
        self._places[group] = len(self.groups)
        self.groups.append(group)
        self._all.add(group.main.span, self._places[group])
        if (recording := group.main.recording) is not None:
            self._recorded[recording].add(self._places[group])
        self._index(group, group.main)

    def join(self, group: LogGroup, log: LogSurvey) -> None:
        """Add a log to a run."""
        group.companions.append(log)
        self._index(group, log)

    def _index(self, group: LogGroup, log: LogSurvey) -> None:
        """Make the run found by the GPUs of one of its logs."""
        place, span = self._places[group], group.main.span
        for uuid in {device.uuid for device in log.gpus}:
            self._by_uuid[uuid].add(span, place)
        self._by_ids[frozenset(device.id for device in group.gpus)].add(span, place)

    def list_similar(self, log: LogSurvey) -> list[LogGroup]:
        """Return the runs that may hold a GPU of a log: those of its time, and those that its recorder wrote.

        Where both state a uuid it decides, so that of the many runs of a cluster few are looked at.
        """
        uuids = {device.uuid for device in log.gpus}
        indexes = [self._all] if None in uuids else [self._by_uuid[uuid] for uuid in (*uuids, None)]
        places = {place for index in indexes for place in index.find_touching(log.span)}
        if (recording := log.recording) is not None:
            places |= self._recorded[recording]
        return [self.groups[place] for place in sorted(places)]

    def list_with_other_gpus(self, log: LogSurvey) -> Iterator[LogGroup]:
        """Yield the runs of a log's time without any of the GPU ids it holds."""
        own = {device.id for device in log.gpus}
        indexes = [index for ids, index in self._by_ids.items() if not ids & own]
        places = {place for index in indexes for place in index.find_touching(log.span)}
        return (self.groups[place] for place in sorted(places))
