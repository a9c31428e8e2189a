"""What is made ahead comes in its order, by another thread, and nothing of it outlives its reader."""

from collections.abc import Iterator
from threading import current_thread, main_thread

import pytest

from gpureport.importers.ahead import ahead


def _made(count: int, by: list[str], *, fails: bool = False) -> Iterator[int]:
    """Yield numbers, and note which thread made each."""
    for number in range(count):
        by.append("reader" if current_thread() is main_thread() else "maker")
        yield number
    if fails:
        msg = "no more"
        raise OSError(msg)


def test_items_come_in_order_by_another_thread() -> None:
    """All but the first are made while the one before is looked at."""
    by: list[str] = []
    assert list(ahead(_made(4, by), lambda _: True)) == [0, 1, 2, 3]
    assert by == ["reader", "maker", "maker", "maker"]


def test_small_items_start_no_thread() -> None:
    """An item that is not worth it is followed by one that the reader makes."""
    by: list[str] = []
    assert list(ahead(_made(4, by), lambda number: number == 1)) == [0, 1, 2, 3]
    assert by == ["reader", "reader", "maker", "reader"]
    assert list(ahead(iter([]), bool)) == []


def test_an_exception_reaches_the_reader() -> None:
    """It comes where the item would have come."""
    items = ahead(_made(2, [], fails=True), lambda _: True)
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(OSError, match="no more"):
        next(items)


def test_a_reader_may_stop_early() -> None:
    """What was begun for it is ended before it goes on, and nothing more is made."""
    by: list[str] = []
    items = ahead(_made(9, by), lambda _: True)
    next(items)
    items.close()
    assert len(by) == 2
