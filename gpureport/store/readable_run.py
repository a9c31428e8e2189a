"""What the store needs of a run that it writes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from gpureport.recording import Run

if TYPE_CHECKING:
    import pyarrow as pa


class ReadableRun(Protocol):
    """A run that is being read: batches first, then what is known about it."""

    @property
    def run_id(self) -> str:
        """Its id; complete after the last batch."""
        ...

    def batches(self) -> Iterator["pa.Table"]:
        """Yield its series."""
        ...

    def run(self) -> Run:
        """Return the run, after the last batch."""
        ...

    def training(self) -> "pa.Table":
        """Return its training metrics, after the last batch."""
        ...
