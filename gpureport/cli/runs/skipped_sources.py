"""Tells on standard error what of a source is not read though nobody said so."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from gpureport.cli.messages.verbosity import print_note

if TYPE_CHECKING:
    from pathlib import Path

    from gpureport.importers.protocol.tracker import LeftOut

_NAMED = 5
"""Names that are written out; more are told by dots."""


def report_skipped_files(source: str, named: "Collection[Path]") -> None:
    """Say which files of a folder are no known log and were not named by an option, on standard error."""
    from gpureport.importers import unrecognised  # noqa: PLC0415 - loads pyarrow

    given = {path.resolve() for path in named}
    names = [str(path) for path in unrecognised(source) if path.resolve() not in given]
    if names:
        print_note(f"gpureport: {source}: skipped, no GPU log: {_few(names)}")


def report_skipped_runs(source: str, found: "Sequence[LeftOut]") -> None:
    """Say which runs of a tracker are not read though nobody said so, on standard error."""
    if not found:
        return
    names: dict[str, list[str]] = {}
    for run in found:
        names.setdefault(run.reason, []).append(run.name)
    said = [f"{len(held)} {reason}: {_few(held)}" for reason, held in names.items()]
    count = f"{len(found)} run{'' if len(found) == 1 else 's'} skipped"
    print_note(f"gpureport: {source}: {count} ({'; '.join(said)}); --run NAME reads one")


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
