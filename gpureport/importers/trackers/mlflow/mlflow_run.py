"""One run of an MLflow store, read into a `Tracked`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpureport.columns import integers
from gpureport.data_quality import AbsentCells, Quality, Rejected
from gpureport.errors import SourceError
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.reject_reasons import FORKED, NOT_SELECTED, OTHER_PROCESS, TORN, TWICE_AT_ONCE
from gpureport.importers.protocol.tracker import Attachment, Selection, Tracked
from gpureport.importers.trackers import training_metrics
from gpureport.importers.trackers.device_tables import add_timing, read_clocks, usual_interval
from gpureport.importers.trackers.mlflow import notes
from gpureport.importers.trackers.mlflow.device_reading import FIRST_VALUE, NOT_A_NUMBER, ReadDevices, read_devices
from gpureport.importers.trackers.mlflow.metric_names import PREFIX, parse_names
from gpureport.importers.trackers.mlflow.monitors import Node, find_nodes
from gpureport.importers.trackers.mlflow.neptune_runs import read_neptune_devices
from gpureport.importers.trackers.mlflow.run_store import (
    HARDWARE_PREFIXES,
    MetricSeries,
    RunInfo,
    RunLabels,
    RunStore,
    drop_impossible_values,
)
from gpureport.importers.trackers.training_metrics import TrainingMetric
from gpureport.record_folder import COMPRESSED_SUFFIXES

if TYPE_CHECKING:
    import pyarrow as pa

OWN_TAGS = "mlflow."
"""Prefix of the tags that MLflow itself sets."""
_KEPT_TAGS = {"mlflow.source.git.commit", "mlflow.note.content", "mlflow.autologging"}
"""Those of them that describe the run; the last one names the framework it logs for."""
ARTIFACT_FOLDER = "gpureport"
"""Folder of a run's artifacts in which logs are looked for and reports are put."""
_LOG_SUFFIXES = (".csv", ".log", ".txt", ".out", *COMPRESSED_SUFFIXES)
_NEPTUNE_PREFIXES = ("sys/", "source_code/", "monitoring/")
PUBLISHED_PREFIX = "gpureport."
"""Prefix of the tags and metrics that publishing sets."""


@dataclass(frozen=True, slots=True)
class MlflowRun:
    """A run of a store that is not read yet."""

    store: RunStore
    info: RunInfo
    selection: Selection

    @property
    def key(self) -> str:
        """Its id."""
        return self.info.id

    @property
    def locator(self) -> str:
        """Its store and its id."""
        return f"mlflow:{self.store.where}#{self.info.id}"

    @property
    def fault(self) -> SourceError | None:
        """Why it cannot be read."""
        return self.info.fault

    def read(self, options: ReadOptions) -> Tracked:
        """Read the run.

        Raises:
            SourceError: when it cannot be read, holds nothing, or holds no hardware series where they are required.
        """
        # figures that were published on the run are no measurements of it
        measured = [each for each in self.store.series(self.info) if not each.key.startswith(PUBLISHED_PREFIX)]
        series = [drop_impossible_values(one) if one.key.startswith(HARDWARE_PREFIXES) else one for one in measured]
        labelled = self.store.labels(self.info)
        if not any(len(each) for each in series):
            raise SourceError(
                self.locator, "the run has no metrics", "name another one; --list shows the runs", code="no_metrics"
            )
        by_key = {each.key: each for each in series}
        content = RunContent(
            self.info, tuple(series), labelled, tuple(find_nodes(parse_names(by_key), by_key, self.info.started))
        )
        found = read_devices(content.nodes, options.gpus, as_logged=options.as_logged)
        if (neptune := read_neptune_devices(by_key, labelled.params, options.gpus)) is not None:
            found.add_neptune(neptune)
        if self.selection.require_hardware and not found.tables:
            raise SourceError(
                self.locator, "no hardware series in this run", notes.HOW_TO_RECORD, code="no_hardware_series"
            )
        return self._with_logs(content.tracked(found, self))

    def _with_logs(self, tracked: Tracked) -> Tracked:
        """Return the run with the logs among its artifacts, or with a note why there are none."""
        try:
            logs = [
                name
                for name in self.store.artifacts(self.info, ARTIFACT_FOLDER)
                if name.lower().endswith(_LOG_SUFFIXES)
            ]
            attached = [Attachment(name=name, path=self.store.fetch_artifact(self.info, name)) for name in logs]
        except SourceError as error:
            said = f"Artifacts of the run could not be looked through: {error.what}."
            return replace(tracked, quality=replace(tracked.quality, notes=(*tracked.quality.notes, said)))
        return replace(tracked, attachments=tuple(attached))


@dataclass(frozen=True, slots=True)
class RunContent:
    """All that a store holds of a run."""

    info: RunInfo
    series: tuple[MetricSeries, ...]
    labelled: RunLabels
    nodes: tuple[Node, ...]

    def training(self, found: ReadDevices) -> list[TrainingMetric]:
        """Return its training metrics."""
        moved = found.neptune.keys if found.neptune else frozenset()
        own = (each for each in self.series if not each.key.startswith(PREFIX) and each.key not in moved)
        return [TrainingMetric(each.key, each.times * 1000, each.steps, each.values) for each in own]

    def tracked(self, found: ReadDevices, run: MlflowRun) -> Tracked:
        """Return the run with its devices."""
        tables = [found.tables[device.id] for device in found.devices]
        seen = read_clocks(tables)
        metrics = self.training(found)
        done = training_metrics.measure_work(metrics, run.selection.throughput, self._span(tables))
        said = notes.RunNotes(
            run.store, self.info, self.nodes, found, done, run.selection, [each.name for each in metrics]
        )
        quality = add_timing(self._quality(found, tuple(said)), seen)
        return Tracked(
            name=self.info.name or self.info.id,
            span=self._span(tables),
            devices=tuple(found.devices),
            series=found.tables,
            quality=quality,
            state=self.state(),
            training=training_metrics.build_training_table(metrics),
            work=None if done is None else done[0],
            interval=usual_interval(seen),
            stages=found.neptune.stages if found.neptune else (),
            params=tuple(self._params(found)),
            tags=(*self._user(), *self._tags()),
            # in MLflow, a run that came from Neptune starts when it was loaded
            lasted=None if found.neptune else self._lasted(),
        )

    def _lasted(self) -> tuple[int, int] | None:
        """Return its start and end by MLflow; without an end, its last point."""
        if self.info.started is None:
            return None
        last = max(int(each.times[-1]) for each in self.series if len(each))
        return self.info.started * 1000, (self.info.ended or last) * 1000

    def _span(self, tables: Sequence["pa.Table"]) -> tuple[int, int]:
        """Return the times of the first and last sample; without hardware, of the training metrics."""
        times = [integers(each.column("timestamp")) for each in tables] or [
            each.times * 1000 for each in self.series if len(each)
        ]
        return int(min(each[0] for each in times)), int(max(each[-1] for each in times))

    def _params(self, found: ReadDevices) -> Iterator[tuple[str, str]]:
        """Yield its params without those that Neptune kept about itself and its processes."""
        for key, value in self.labelled.params:
            if found.neptune is None or not key.startswith(_NEPTUNE_PREFIXES):
                yield key, value

    def _tags(self) -> Iterator[tuple[str, str]]:
        for key, value in self.labelled.tags:
            if key in _KEPT_TAGS or not key.startswith((OWN_TAGS, PUBLISHED_PREFIX)):
                yield key, value

    def _user(self) -> Iterator[tuple[str, str]]:
        """Yield who started the run, unless that is root, which is nobody in particular, or a tag says it."""
        tags = dict(self.labelled.tags)
        user = tags.get("mlflow.user", "root")
        if user != "root" and "user" not in tags:
            yield "user", user

    def state(self) -> str:
        """Return a text that changes whenever the store holds more of the run, or its labels change."""
        ends = [(each.key, len(each), int(each.times[-1]) if len(each) else 0) for each in self.series]
        labels = (self.labelled.params, tuple(self._tags()))
        return repr((self.info.status, self.info.ended, self.info.name, ends, labels))

    def _quality(self, found: ReadDevices, said: tuple[str, ...]) -> Quality:
        torn = sum(each.torn for each in self.series)
        points = sum(map(len, self.series)) + torn
        first = sum(count for (_, reason), count in found.absent.items() if reason == FIRST_VALUE)
        rejected = {NOT_SELECTED: found.left_out, TORN: torn, TWICE_AT_ONCE: found.twice}
        if found.neptune:
            rejected |= {OTHER_PROCESS: found.neptune.copies, FORKED: found.neptune.crowded}
        absent = Counter(found.absent)
        for each in self.series:
            absent[each.key, NOT_A_NUMBER] += int(np.isnan(each.values).sum())
        return Quality(
            lines=points,
            rows_kept=points - first - sum(rejected.values()),
            noise=first,
            rejected=tuple(Rejected(reason=r, rows=n, first_line=None) for r, n in rejected.items() if n),
            absent_cells=tuple(
                AbsentCells(column=key, reason=reason, cells=n) for (key, reason), n in sorted(absent.items()) if n
            ),
            imputed_points=found.neptune.zeros if found.neptune else 0,
            notes=said,
        )
