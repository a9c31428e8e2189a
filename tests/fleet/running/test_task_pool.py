"""Tasks on executors whose workers die: all are done but the one to blame."""

from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from typing import Any

import pytest

from gpureport.fleet.running.task_pool import TRIES, Engine, LostWorkerError, TaskPool


class FragileExecutor(Executor):
    """Runs tasks when a second one waits, and breaks with all that wait on a deadly one."""

    def __init__(self, deadly: set[int]) -> None:
        """Take the tasks that kill."""
        self._deadly = deadly
        self._is_broken = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> "Future[Any]":  # noqa: ANN401 - as Executor
        """Run a task, or break."""
        if self._is_broken:
            raise BrokenExecutor
        future: Future[Any] = Future()
        if args[0] in self._deadly:
            self._is_broken = True
            future.set_exception(BrokenExecutor())
        else:
            try:
                future.set_result(fn(*args))
            except ValueError as error:
                future.set_exception(error)
        return future


def run(deadly: set[int], at_once: int = 4) -> tuple[dict[int, int | Exception], int]:
    """Return the outcome of ten tasks, and how many executors it took."""
    opened = 0

    @contextmanager
    def open_fragile() -> Iterator[Executor]:
        nonlocal opened
        opened += 1
        yield FragileExecutor(deadly)

    outcomes = dict(TaskPool(Engine(open=open_fragile, at_once=at_once), square, range(10)).run())
    return outcomes, opened


def square(number: int) -> int:
    """Return a square; no square of nine is known."""
    if number == 9:
        msg = "nine"
        raise ValueError(msg)
    return number * number


@pytest.mark.parametrize("at_once", [1, 4, 100])
def test_every_task_is_done_and_an_error_is_its_outcome(at_once: int) -> None:
    """One executor serves all."""
    outcomes, opened = run(set(), at_once)
    assert {number: outcome for number, outcome in outcomes.items() if number < 9} == {n: n * n for n in range(9)}
    assert isinstance(outcomes[9], ValueError)
    assert opened == 1


def test_a_cluster_that_is_gone_blames_no_task() -> None:
    """What was under way waits for the next one, and an error of opening that ends it all."""
    opened = 0

    @contextmanager
    def open_dying() -> Iterator[Executor]:
        nonlocal opened
        opened += 1
        if opened > 2:
            raise ConnectionError
        yield CancellingExecutor(after=3)

    done = []
    with pytest.raises(ConnectionError):
        done += [number for number, _ in TaskPool(Engine(open=open_dying, at_once=4), square, range(10)).run()]
    assert opened == 3


class CancellingExecutor(FragileExecutor):
    """Runs some tasks, and cancels all later ones."""

    def __init__(self, after: int) -> None:
        """Take how many it runs."""
        super().__init__(set())
        self._left = after

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> "Future[Any]":  # noqa: ANN401 - as Executor
        """Run a task, or cancel it."""
        if self._left:
            self._left -= 1
            return super().submit(fn, *args)
        future: Future[Any] = Future()
        future.cancel()
        future.set_running_or_notify_cancel()
        return future


@pytest.mark.parametrize("at_once", [1, 4, 100])
def test_the_task_that_kills_its_workers_is_given_up(at_once: int) -> None:
    """After as many deaths as it is granted; the tasks that were under way with it are done."""
    outcomes, opened = run({3, 6}, at_once)
    assert [number for number, outcome in outcomes.items() if isinstance(outcome, LostWorkerError)] == [3, 6]
    assert sorted(outcomes) == list(range(10))
    assert opened <= 2 * TRIES + 1
