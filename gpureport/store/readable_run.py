"""What the store asks of a run that is to be written."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from gpureport.recording import Run

if TYPE_CHECKING:
    import pyarrow as pa


class ReadableRun(Protocol):
    """A run that is being read: batches first, then what is known about it."""

    @property
    def run_id(self) -> str:
        """Its id, best asked for when the batches are out."""
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

    def renamed(self) -> Mapping[str, str]:
        """Return by their old ids the devices whose rows came under another one, after the last batch."""
        ...

    def rejects(self) -> bytes:
        """Return its rejected lines, after the last batch."""
        ...
