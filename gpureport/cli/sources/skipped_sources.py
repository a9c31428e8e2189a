"""Reports on standard error which files and runs of a source are skipped."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from gpureport.cli.messages.verbosity import print_note

if TYPE_CHECKING:
    from pathlib import Path

    from gpureport.importers.protocol.tracker import SkippedRun

_NAMED = 5
"""Most names that are listed."""


def report_skipped_files(source: str, used: "Collection[Path]", reasons: "Mapping[Path, str]") -> None:
    """Report the files of a folder that belong to no run, and why.

    Args:
        source: the folder; nothing is reported of a file.
        used: the files that are read.
        reasons: why a host log belongs to no run.
    """
    from gpureport.importers.sources import list_unused_files  # noqa: PLC0415 - loads pyarrow

    names: dict[str, list[str]] = {}
    for path in list_unused_files(source, used):
        names.setdefault(reasons.get(path, "no GPU log"), []).append(str(path))
    for reason, group in names.items():
        print_note(f"Skipped, {reason}: {list_names(group)}")


def report_skipped_runs(source: str, found: "Sequence[SkippedRun]") -> None:
    """Report the runs of a tracker that are skipped, and why."""
    if not found:
        return
    names: dict[str, list[str]] = {}
    for run in found:
        names.setdefault(run.reason, []).append(run.name)
    reasons = [f"{len(group)} {reason}: {list_names(group)}" for reason, group in names.items()]
    count = f"{len(found)} run{'' if len(found) == 1 else 's'} skipped"
    hint = "; --run NAME reads one" if any(run.is_readable for run in found) else ""
    print_note(f"gpureport: {source}: {count} ({'; '.join(reasons)}){hint}")


def report_deleted_runs(source: str, runs: Sequence[str]) -> None:
    """Report the runs that a listing leaves out since the tracker shows them no more.

    Args:
        source: the store.
        runs: name and id of each.
    """
    if runs:
        count = "1 deleted run is" if len(runs) == 1 else f"{len(runs)} deleted runs are"
        print_note(f"gpureport: {source}: {count} not listed: {list_names(runs)}; give the id to read one")


def report_group(source: str, group: str | None, recordings: Sequence[str]) -> None:
    """Report which recordings `--group` makes one run, by its name, which selects none.

    Args:
        source: what holds them.
        group: the name that was given; nothing is reported without one.
        recordings: their ids; none where the source holds nothing that can be grouped.
    """
    if group is None:
        return
    if not recordings:
        print_note(f"gpureport: {source}: --group is for local recordings of Neptune, and changes nothing here")
    elif len(recordings) > 1:
        count, names = len(recordings), list_names(recordings)
        print_note(f"gpureport: {source}: {count} recordings read as one run called {group}: {names}; --run takes some")


def list_names(names: Sequence[str]) -> str:
    """Return the first names of a list, with a sign that more follow."""
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
