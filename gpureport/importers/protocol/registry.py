"""Importers by name, each loaded when its turn comes: most sources are known before most importers are asked."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Generic, TypeVar, cast, overload

T = TypeVar("T")


class Registry(Sequence[T], Generic[T]):
    """Instances of classes that are named and imported only when they are reached."""

    def __init__(self, names: Sequence[str]) -> None:
        """Remember which.

        Args:
            names: `module:Class`, the module below `gpureport.importers`.
        """
        self._names = tuple(names)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        """Load what stands at a place."""
        if isinstance(index, slice):
            return Registry[T](self._names[index])
        return cast("T", _loaded(self._names[index]))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._names)


@cache
def _loaded(name: str) -> object:
    module, _, made = name.partition(":")
    return getattr(import_module(f"gpureport.importers.{module}"), made)()
