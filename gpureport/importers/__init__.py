"""Sources to recordings: `sources` says which files are logs, `runs` which are one run, `reading` reads one.

`protocol` is what an importer and a tracker are; to follow one log, start at `extraction.py` and `nvidia_smi/query.py`.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from gpureport.importers.protocol.importer import DescribedSource, Importer
    from gpureport.importers.protocol.tracker import Tracker

T = TypeVar("T")


class Registry(Sequence[T], Generic[T]):
    """Importers, each loaded when its turn comes; `kinds` are known without loading any."""

    def __init__(self, *names: str) -> None:
        """Remember `kind=package:Class` below `gpureport.importers`; without `kind=` it is the package's name."""
        self._names = names
        self.kinds = tuple(re.split("[.=]", name.partition(":")[0])[0 if "=" in name else -1] for name in names)

    def __getitem__(self, index: Any) -> Any:
        return _load(self._names[index])

    def __len__(self) -> int:
        return len(self._names)


@cache
def _load(name: str) -> object:
    package, _, class_name = name.rpartition("=")[2].partition(":")
    found = getattr(import_module(f"gpureport.importers.{package}"), class_name)
    return found() if isinstance(found, type) else found


IMPORTERS: "Registry[Importer]" = Registry(
    "nvidia_smi=nvidia_smi.query:NvidiaSmi",
    "gpustat=tools.monitors:GPUSTAT",
    "nvitop=tools.monitors:NVITOP",
    "tools.dcgm:DCGM",
    "wandb=tools.monitors:WANDB",
    "tools.monitors:MONITORS",
    "tools.mapped:Mapped",
)
"""Importers of logs that make a run, in the order in which they are asked."""
HOST_IMPORTERS: "Registry[Importer]" = Registry("host=host_forms:HOST")
"""Importers of files that lie beside a log and are joined to it by time."""
TRAINING_IMPORTERS: "Registry[DescribedSource]" = Registry("training:TrainingLog")
TRACKERS: "Registry[Tracker]" = Registry(
    "mlflow=mlflow.runs:MLFLOW", "neptune=neptune.runs:NEPTUNE", "trackio:TRACKIO", "accounting:ACCOUNTING"
)
"""Readers of experiment trackers; one of them is asked before a source is taken for a log."""
LOCATORS = tuple(f"{kind}:" for kind in TRACKERS.kinds)
