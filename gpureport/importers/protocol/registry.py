"""The registry of importers: every kind of source that is read, each loaded when its turn comes.

A new importer is one line here. Its package is named after its kind, so that kinds are known without loading any.
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
    """Instances of classes that are imported only when they are reached; kinds are known without loading any."""

    def __init__(self, *names: str) -> None:
        """Remember `package:Class` below `gpureport.importers`, or an instance there; `kind=` may stand before it.

        Without it the last part of the package is the kind.
        """
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
    "nvidia_smi:NvidiaSmi",
    "gpustat=tools.snapshots:GPUSTAT",
    "tools.nvitop:NVITOP",
    "tools.dcgm:DCGM",
    "tools.wandb:WANDB",
    "tools.monitors:MONITORS",
    "tools.mapped:Mapped",
)
"""Importers of logs that make a run, in the order in which they are asked."""
HOST_IMPORTERS: "Registry[Importer]" = Registry("host:HostLog")
"""Importers of files that lie beside a log and are joined to it by time."""
TRAINING_IMPORTERS: "Registry[DescribedSource]" = Registry("training:TrainingLog")
"""Importers of what a training loop wrote of its metrics."""
TRACKERS: "Registry[Tracker]" = Registry(
    "mlflow:Mlflow", "neptune=neptune.runs:Neptune", "trackio:Trackio", "accounting:Accounting"
)
"""Readers of experiment trackers; one of them is asked before a source is taken for a log."""
LOCATORS = tuple(f"{kind}:" for kind in TRACKERS.kinds)
"""What the locator of a tracker's store begins with."""
