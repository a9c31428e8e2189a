"""Runs a function on many tasks, on any executor, and survives the death of its workers."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from gpureport.redaction import OwnSecrets, get_own_secrets, use_own_secrets

Task = TypeVar("Task")
Result = TypeVar("Result")

TRIES = 3
"""Deaths of workers after which a task is given up: once beside others, then twice alone (pragmatic)."""


class LostWorkerError(Exception):
    """Every worker that was given a task died of it."""

    def __init__(self) -> None:
        super().__init__("its worker was killed each time, perhaps for memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Where tasks are run.

    Attributes:
        open: opens an executor; called anew after its workers died.
        at_once: tasks that are handed over before the first is done.
    """

    open: Callable[[], AbstractContextManager[Executor]]
    at_once: int


class TaskPool(Generic[Task, Result]):
    """Tasks that are run on an engine.

    An executor says that a worker died, and not which task killed it: every task under way is suspected. Suspects are
    run again one at a time, so that the one to blame is found and the others are done.
    """

    def __init__(self, engine: Engine, function: Callable[[Task], Result], tasks: Sequence[Task]) -> None:
        self._engine = engine
        self._function = function
        self._tasks = tasks
        self._waiting = deque(range(len(tasks)))
        self._deaths: Counter[int] = Counter()
        self._under_way: dict[Future[Result], int] = {}

    def run(self) -> Iterator[tuple[Task, Result | Exception]]:
        """Yield every finished task with its result, or the error of its worker."""
        while self._waiting:
            try:
                with self._engine.open() as executor:
                    yield from self._run_on(executor)
            except BrokenExecutor:
                yield from self._blame_tasks()
            except CancelledError:
                # the executor itself is gone, which says nothing of the tasks
                self._waiting.extendleft(reversed(self._under_way.values()))
                self._under_way = {}

    def _run_on(self, executor: Executor) -> Iterator[tuple[Task, Result | Exception]]:
        while self._waiting or self._under_way:
            self._submit(executor)
            for future in wait(self._under_way, return_when=FIRST_COMPLETED).done:
                error = future.exception()
                if isinstance(error, BrokenExecutor):
                    raise error
                place = self._under_way.pop(future)
                outcome = _unwrap(future)
                yield self._tasks[place], outcome

    def _submit(self, executor: Executor) -> None:
        """Hand over as many tasks as the engine takes at once; a suspect alone."""
        while self._waiting and len(self._under_way) < self._engine.at_once:
            is_suspect = self._deaths[self._waiting[0]] > 0
            if self._under_way and (is_suspect or self._has_suspect()):
                return
            function = partial(_run_with_secrets, get_own_secrets(), self._function)
            future = executor.submit(function, self._tasks[self._waiting[0]])
            self._under_way[future] = self._waiting.popleft()

    def _has_suspect(self) -> bool:
        return any(self._deaths[place] for place in self._under_way.values())

    def _blame_tasks(self) -> Iterator[tuple[Task, Result | Exception]]:
        """Yield what was done before the workers died, and the tasks to give up."""
        under_way, self._under_way = self._under_way, {}
        again = []
        for future, place in under_way.items():
            if future.done() and not future.cancelled() and not isinstance(future.exception(), BrokenExecutor):
                outcome = _unwrap(future)
                yield self._tasks[place], outcome
                continue
            self._deaths[place] += 1
            if self._deaths[place] >= TRIES:
                yield self._tasks[place], LostWorkerError()
            else:
                again.append(place)
        self._waiting.extendleft(reversed(again))


def _run_with_secrets(own: OwnSecrets, function: Callable[[Task], Result], task: Task) -> Result:
    """Run a task, wherever it is, with the secrets that the settings here name."""
    use_own_secrets(own)
    return function(task)


def _unwrap(future: "Future[Result]") -> "Result | Exception":
    """Return the result of a task that is done, or its error."""
    try:
        return future.result()
    except Exception as error:
        return error
