"""What one process wrote of a run."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpureport.importers.trackers.neptune.run_content import RunContent
from gpureport.importers.trackers.neptune_hardware.namespaces import Namespace
from gpureport.importers.trackers.neptune_hardware.process_samples import ProcessSamples


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessContent:
    """What one process wrote, or several into one place.

    Attributes:
        content: what it wrote, with corrected times.
        spaces: the selected namespaces of hardware series.
        every: all namespaces of hardware series.
        said: notes on its times.
        back: when clocks were set back, in microseconds.
        samples: its samples, one for each of `spaces`.
    """

    content: RunContent
    spaces: tuple[Namespace, ...]
    every: tuple[Namespace, ...]
    said: tuple[str, ...] = ()
    back: tuple[int, ...] = ()
    samples: tuple[ProcessSamples, ...] = ()

    def sampled(self, samples: Iterable[ProcessSamples]) -> "ProcessContent":
        """Return it with its samples."""
        return replace(self, samples=tuple(samples))

    @property
    def other_points(self) -> int:
        """Number of points of hardware series without a metric here."""
        return sum(len(self.content.series[path].times) for path in self.others)

    @property
    def others(self) -> tuple[str, ...]:
        """Paths of hardware series without a metric here."""
        return tuple(path for space in self.spaces for path in space.others)

    def hardware(self, path: str) -> bool:
        """Return whether a series is a hardware series, or derived from one by the recipe."""
        return any(path in each.leaves or path in each.others or each.below(path) for each in self.every)
