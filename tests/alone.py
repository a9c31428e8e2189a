"""Tests that measure time run alone, though others run in several processes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_NEXT, _RUNNING = Path(__file__), Path(__file__).with_name("conftest.py")
"""Files whose locks say who may begin, and who runs: they are there, and left as they are."""


@contextmanager
def beside_others(*, alone: bool) -> Iterator[None]:
    """Run beside tests of other processes, or with none of them."""
    with _locked(_NEXT, exclusively=True) as begun, _locked(_RUNNING, exclusively=alone):
        # who waits to be alone lets nobody else begin
        begun()
        yield


@contextmanager
def _locked(path: Path, *, exclusively: bool) -> Iterator[Callable[[], None]]:
    """Hold a lock until the block ends, or until it is let go before."""
    from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock  # noqa: PLC0415 - Windows has none

    with path.open("rb") as file:
        flock(file, LOCK_EX if exclusively else LOCK_SH)
        yield lambda: flock(file, LOCK_UN)
