"""What comes next is made in a thread while what came before is read."""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

_T = TypeVar("_T")


def ahead(items: Iterable[_T], worth: Callable[[_T], bool]) -> Generator[_T, None, None]:
    """Yield items, each of which is made while the one before is looked at; exceptions reach whoever asks.

    Args:
        items: what is made; None ends it. It is asked for by one thread at a time, and may itself make nothing ahead.
        worth: whether an item is so large that another thread is worth its while.
    """
    source = iter(items)
    item = next(source, None)
    while item is not None:
        coming = _maker().submit(next, source, None) if worth(item) else None
        try:
            yield item
        finally:
            # what is made is left to nobody when the reader stops early
            wait([coming] if coming else [])
        item = coming.result() if coming else next(source, None)


@cache
def _maker() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="ahead")
