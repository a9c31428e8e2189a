"""What a target is: a reader, texts to begin with, and how a text reaches it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

SAMPLES = Path(__file__).parents[3] / "sample_logs"


@dataclass(frozen=True, kw_only=True)
class Target:
    """A reader that is given whatever there may be.

    Attributes:
        name: what it reads.
        make_seeds: returns texts that it can read, from which others are made.
        read: reads a file of any content in a folder of its own. It ends in a result or in an error of the project.
        file: name of that file.
        prepare: puts beside the file what the reader needs besides; called once a folder.
    """

    name: str
    make_seeds: Callable[[], Sequence[bytes]]
    read: Callable[[Path], object]
    file: str = "input"
    prepare: Callable[[Path], object] = lambda _: None

    @cached_property
    def seeds(self) -> tuple[bytes, ...]:
        """The texts to begin with."""
        return tuple(self.make_seeds())
