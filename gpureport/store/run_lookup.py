"""Finds stored runs by what a person types: a name, an id, or the beginning of an id."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from gpureport.errors import StoreError, UnknownRunError

if TYPE_CHECKING:
    from gpureport.store.indexed_run import IndexedRun
    from gpureport.store.run_index import RunIndex
    from gpureport.store.store import Entry

_ID = re.compile(r"[0-9a-f]{16}")
_SHORTEST_PREFIX = 4


class RunLookup:
    """The names of a store as they were when the first was looked up; made once a command.

    A whole id is a folder, which is read without a look at any other run.
    """

    def __init__(self, read_index: "Callable[[], RunIndex]", get: "Callable[[str], Entry | None]") -> None:
        self._read_index = read_index
        self._get = get

    @cached_property
    def _index(self) -> "RunIndex":
        return self._read_index()

    @cached_property
    def _ids(self) -> dict[str, list[str]]:
        """Ids of the runs by name."""
        ids = defaultdict(list)
        for run in self._index.runs:
            ids[run.name].append(run.id)
        return ids

    @property
    def names(self) -> list[str]:
        """The names of the runs, each once, in the order of the oldest run of each."""
        return [*self._ids]

    def find(self, name: str) -> "Entry":
        """Return the one run with this name, or whose id is this or begins so.

        Raises:
            UnknownRunError: when there is none.
            StoreError: when there is more than one, or its `run.json` is damaged.
        """
        if _ID.fullmatch(name) and (entry := self._get(name)):
            return entry
        ids = {*self._ids.get(name, ())}
        if len(name) >= _SHORTEST_PREFIX:
            known = (*(run.id for run in self._index.runs), *self._index.damaged)
            ids |= {each for each in known if each.startswith(name)}
        if len(ids) > 1:
            hint = f"name one by its id: {', '.join(sorted(ids))}"
            raise StoreError(name, f'{len(ids)} runs are named "{name}"', hint, code="several_runs")
        if ids and (entry := self._get(*ids)):
            return entry
        from difflib import get_close_matches  # noqa: PLC0415 - most names are spelt right

        close = get_close_matches(name, self.names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "list runs: gpureport runs"
        raise UnknownRunError(name, f'no file or stored run named "{name}"', hint, code="unknown_run")


def may_hold_sources(runs: "Sequence[IndexedRun]", sizes: Sequence[int]) -> bool:
    """Return whether one of some runs may have sources of these sizes; what no size is known of may be any."""
    wanted = sorted(sizes)
    for run in runs:
        # training metrics are no part of a run's identity
        kinds_and_sizes = zip(run.source_kinds, run.source_sizes, strict=True)
        recorded = [size for kind, size in kinds_and_sizes if kind != "training"]
        known = [size for size in recorded if size is not None]
        if len(known) < len(recorded) or sorted(known) == wanted:
            return True
    return False
