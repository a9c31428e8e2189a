"""Reports on standard error which files and runs of a source are skipped."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from gpureport.cli.messages.verbosity import print_note

if TYPE_CHECKING:
    from pathlib import Path

    from gpureport.importers.protocol.tracker import SkippedRun

_NAMED = 5
"""Most names that are listed."""


def report_skipped_files(source: str, named: "Collection[Path]") -> None:
    """Report the files of a folder that are no GPU log and that no option names."""
    from gpureport.importers import list_unrecognised_files  # noqa: PLC0415 - loads pyarrow

    used = {path.resolve() for path in named}
    names = [str(path) for path in list_unrecognised_files(source) if path.resolve() not in used]
    if names:
        print_note(f"Skipped, no GPU log: {list_names(names)}")


def report_skipped_runs(source: str, found: "Sequence[SkippedRun]") -> None:
    """Report the runs of a tracker that are skipped, and why."""
    if not found:
        return
    names: dict[str, list[str]] = {}
    for run in found:
        names.setdefault(run.reason, []).append(run.name)
    reasons = [f"{len(group)} {reason}: {list_names(group)}" for reason, group in names.items()]
    count = f"{len(found)} run{'' if len(found) == 1 else 's'} skipped"
    print_note(f"gpureport: {source}: {count} ({'; '.join(reasons)}); --run NAME reads one")


def list_names(names: Sequence[str]) -> str:
    """Return the first names of a list, with a sign that more follow."""
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
