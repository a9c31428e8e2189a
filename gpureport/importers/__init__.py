"""Reads sources into recordings: `sources` finds logs, `runs` groups them into runs, and `reading` reads one run.

`source_text` splits a log into lines, a form such as `nvidia_smi/query.py` turns them into `Rows`,
and `extraction` finds each row's GPU and time. `headings` defines the words for metrics and
units. `surveys` compares logs, and `joining` joins them. `protocol` defines importers and trackers.
"""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any


class Registry:
    """Importers or trackers by kind, in the order tried; each is loaded on first use."""

    def __init__(self, **places: str) -> None:
        self._places, self.kinds = places, tuple(places)

    def __getitem__(self, kind: str) -> Any:
        return _load(self._places[kind])

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, self.kinds)


@cache
def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    found = getattr(import_module(f"gpureport.importers.{module}"), name)
    return found() if isinstance(found, type) else found


IMPORTERS = Registry(
    nvidia_smi="nvidia_smi.query:NvidiaSmi",
    gpustat="tools.monitors:GPUSTAT",
    nvitop="tools.monitors:NVITOP",
    dcgm="tools.dcgm:DCGM",
    wandb="tools.monitors:WANDB",
    monitors="tools.monitors:MONITORS",
    mapped="tools.mapped:Mapped",
)
HOST_IMPORTERS = Registry(host="host_forms:HOST")
TRAINING = Registry(training="training:TrainingLog")
TRACKERS = Registry(
    mlflow="mlflow.runs:MLFLOW",
    neptune="neptune.runs:NEPTUNE",
    trackio="file_trackers:TRACKIO",
    accounting="file_trackers:ACCOUNTING",
)
"""Readers for experiment trackers, tried before a source is read as a log."""
LOCATORS = tuple(f"{kind}:" for kind in TRACKERS.kinds)
