"""What a reader must know of a run of MLflow, one sentence each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from gpureport.importers.note_text import list_first
from gpureport.importers.protocol.tracker import Selection
from gpureport.importers.trackers.mlflow.device_reading import ReadDevices, find_unused_gpus
from gpureport.importers.trackers.mlflow.monitors import Node
from gpureport.importers.trackers.mlflow.run_store import RunInfo, RunStore
from gpureport.importers.trackers.training_metrics import describe_training
from gpureport.recording import Work

HOW_TO_RECORD = (
    "record with mlflow.enable_system_metrics_logging() after pip install psutil nvidia-ml-py; a run shorter than the "
    "sampling interval of 10 s has none"
)
_MOST_NAMED = 3
_UNSAMPLED_INTERVALS = 3.0
"""Intervals without samples at either end of a run that are worth a note."""


@dataclass(frozen=True, slots=True)
class RunNotes:
    """Yields the notes on one run."""

    store: RunStore
    info: RunInfo
    nodes: Sequence[Node]
    found: ReadDevices
    done: tuple[Work, str] | None
    selection: Selection
    metrics: Sequence[str]

    def __iter__(self) -> Iterator[str]:
        """Yield the sentences, the most important first."""
        return chain(self._of_run(), self._of_hardware(), self._of_time(), self._of_training())

    def _of_run(self) -> Iterator[str]:
        version = self.store.version
        yield f"Read from a {self.store.kind} of MLflow{f' ({version})' if version else ''}, status {self.info.status}."
        if self.info.deleted:
            yield "The run was deleted in MLflow; it is read because it was named by its id."
        if not self.info.finished:
            yield (
                "The run has no end in MLflow: it was still running, or its process was killed; "
                "it ends with its last sample."
            )

    def _of_hardware(self) -> Iterator[str]:
        gpus = [device for device in self.found.devices if device.index is not None]
        if not self.found.devices:
            yield f"No system metrics in this run: {HOW_TO_RECORD}."
        elif not gpus and not self.found.left_out:
            yield "Host metrics only: nvidia-ml-py was missing where the run was made."
        yield from self._of_neptune()
        if self.found.derived:
            yield f"Derived from a value and its share, not recorded: {list_first(self.found.derived, _MOST_NAMED)}."
        if any("gpu_memory_used_bytes" in self.found.tables[gpu.id].column_names for gpu in gpus):
            yield (
                "GPU memory in use holds what the driver reserves (NVML's first interface), "
                "a few hundred MiB that nvidia-smi leaves out."
            )
        if idle := list(find_unused_gpus(self.found)):
            yield (
                f"{list_first(idle, _MOST_NAMED)} never was above 1%: MLflow records every GPU of the machine; "
                "--gpus keeps those of the job."
            )
        extra = [name for each in self.found.tables.values() for name in each.column_names if name.startswith("extra_")]
        if extra:
            names = list_first(sorted(set(extra)), _MOST_NAMED)
            yield f"System metrics without a place of their own are kept as {names}."

    def _of_neptune(self) -> Iterator[str]:
        neptune = self.found.neptune
        if neptune is None:
            return
        yield "The run came from Neptune: its hardware series are those of Neptune's client, stamped when read."
        if neptune.zeros:
            yield f"{neptune.zeros} values of 0 that Neptune's client drops were put back."
        if neptune.never:
            never = list_first(neptune.never, _MOST_NAMED)
            yield f"Utilization was never reported and is unknown, always 0 or not supported: {never}."
        yield "Its times may be local time of the machine that exported it, several hours off."

    def _of_time(self) -> Iterator[str]:
        shifts = [one.logged - one.read for node in self.nodes for one in node.monitors]
        if shifts:
            late = float(np.median(np.concatenate(shifts))) / 1e3
            stays = "as --mlflow-raw-times says, they stay there"
            moved = f"all of them were moved back, by {late:.2f} s at the median"
            yield (
                "MLflow stamps a system metric when it logs it, one interval after it was read: "
                f"{stays if self.found.as_logged else moved}."
            )
        for node in self.nodes:
            if node.together > 1:
                where = "" if node.node is None else f" on {node.node}"
                yield (
                    f"{node.together} processes recorded the same names at the same time{where}, each with a clock "
                    "of its own: their samples were told apart by their steps and are all kept. Give each a node id."
                )
            elif (node.node or "").rpartition("/")[2].startswith("writer_"):
                yield f"{node.node} is one of several machines that recorded under the same names; give each a node id."
        yield from self._ends()

    def _ends(self) -> Iterator[str]:
        """Yield how long the run lasted before its first and after its last sample."""
        ticks = [one for node in self.nodes for one in node.monitors]
        usual = max((one.usual or 0.0 for one in ticks), default=0.0)
        if not ticks or not usual:
            return
        if self.info.started is not None:
            head = (min(int(one.read[0]) for one in ticks) - self.info.started) / 1e3
            if head > _UNSAMPLED_INTERVALS * usual:
                yield f"No hardware samples in the first {head:.0f} s of the run."
        if self.info.ended is not None:
            tail = (self.info.ended - max(int(one.logged[-1]) for one in ticks)) / 1e3
            if tail > _UNSAMPLED_INTERVALS * usual:
                yield f"No hardware samples in the last {tail:.0f} s of the run."

    def _of_training(self) -> Iterator[str]:
        for note in describe_training(self.metrics, self.done, self.selection.throughput):
            yield f"{note[0].upper()}{note[1:]}."
