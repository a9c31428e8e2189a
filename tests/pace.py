"""Limits on the time that a piece of work takes, which hold on a slow machine as on a quick one."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time

_USUAL = 0.028
"""Seconds that the work below takes where the limits were set: the least of twelve times it was measured."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail when what is done takes longer, in time of the processor: the clock's is that of others as well.

    A machine on which many work has phases in which all of it takes twice the time. So the limit is stretched by what
    a fixed work takes just before and after.

    Args:
        seconds: where the fixed work takes `_USUAL`; it is never less.
    """
    before = _fixed()
    start = process_time()
    yield
    taken = process_time() - start
    slower = max(before, _fixed(), _USUAL) / _USUAL
    assert taken < seconds * slower, f"{taken:.2f} s of the processor, on a machine {slower:.1f} times as slow as usual"


def _fixed() -> float:
    """Return the least time of three that a loop of the interpreter takes."""
    taken = []
    for _ in range(3):
        start, number = process_time(), 0
        for count in range(400_000):
            number ^= count * count
        taken.append(process_time() - start)
    return min(taken)
