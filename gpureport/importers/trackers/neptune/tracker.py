"""Neptune as a tracker: exports, local folders of its clients, and servers of one's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gpureport.errors import SourceError
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.tracker import ListedRun, SelectedRuns, Selection, Tracked
from gpureport.importers.trackers.neptune import run_assembly, run_selection
from gpureport.importers.trackers.neptune.exports import export_files
from gpureport.importers.trackers.neptune.local import client_folders, scale_databases
from gpureport.importers.trackers.neptune.run_content import NeptuneRun, RunContent, RunOutline, merge_outlines
from gpureport.importers.trackers.neptune.run_selection import PREFIX
from gpureport.importers.trackers.neptune_hardware import name_map, namespaces
from gpureport.importers.trackers.neptune_hardware.name_map import NameMap

_FORMS = (export_files.is_export_file, client_folders.is_operation_log, scale_databases.is_scale_database)

_CLIENT = ".neptune"
"""Folder in which the client keeps runs, where it was started."""


class Neptune:
    """Reads what is left of runs of Neptune."""

    kind: ClassVar[str] = "neptune"
    title: ClassVar[str] = "Neptune"
    recognised_by: ClassVar[str] = (
        "An export, or a folder of one of Neptune's clients, by its content, or a locator `neptune:PATH`."
    )
    sample: ClassVar[str] = ""

    def claims(self, source: str) -> bool:
        """Return whether a locator, file or folder holds runs of Neptune."""
        if source.startswith(PREFIX):
            return True
        try:
            return any(form(path) for path in run_selection.list_files(Path(source)) for form in _FORMS)
        except OSError:
            return False

    def keeps_files(self, folder: Path) -> bool:
        """Return that no folder is: files of runs lie in those of the store."""
        del folder
        return False

    def refuse_folder(self, folder: Path) -> None:
        """Refuse a folder in which Neptune's client was started."""
        if (folder / _CLIENT).is_dir():
            what = "the folder holds runs of Neptune's client and no log"
            raise SourceError(str(folder), what, f"give {folder / _CLIENT}", code="folder_of_client")

    def runs(self, source: str, selection: Selection) -> SelectedRuns:
        """Return the runs that are meant, and those left out.

        Raises:
            SourceError: when there is no such store or run.
        """
        chosen = name_map.read_name_map(selection.map)
        store, held, named = run_selection.open_store(source, selection)
        wanted = run_selection.select_runs(held, source, selection, chosen, named=named)
        groups = [[each] for each in wanted] if selection.group is None else [wanted]
        skipped = () if named or selection.runs else run_selection.list_skipped_runs(held, wanted, selection, chosen)
        runs = tuple(_Run(store, group, selection, chosen) for group in groups)
        grouped = () if selection.group is None else tuple(each.id for each in wanted)
        return SelectedRuns(runs=runs, skipped=tuple(skipped), grouped=grouped)

    def listed(self, source: str, selection: Selection) -> list[ListedRun]:
        """Return what a store holds, with the reason of what cannot be read."""
        chosen = name_map.read_name_map(selection.map)
        return [_list_run(each, chosen) for each in run_selection.open_store(source, selection)[1]]


def _list_run(held: NeptuneRun, chosen: NameMap) -> ListedRun:
    if held.fault is not None:
        return ListedRun(id=held.id, name=held.id, status="cannot be read", started=None, fault=held.fault)
    outline = held.outline()
    spaces = run_selection.hardware_namespaces(outline, chosen)
    points = sum(outline.points.get(path, 0) for space in spaces for path in space.leaves)
    nothing = "no hardware series" if outline.surveyed else "series not looked at"
    holds = "; ".join(_format_namespace(space, outline) for space in spaces) or nothing
    project = f"{outline.project}  " if outline.project else ""
    return ListedRun(
        id=held.id,
        name=outline.name,
        status=outline.status or "status not recorded",
        started=outline.started,
        points=points if outline.surveyed else None,
        holds=project + holds,
    )


def _format_namespace(space: namespaces.Namespace, outline: RunOutline) -> str:
    ticks = max(outline.points.get(path, 0) for path in space.leaves)
    gpus = f"{space.gpus} GPU{'' if space.gpus == 1 else 's'}"
    return f"{space.stage or space.path}: {ticks} ticks, {gpus}"


@dataclass(frozen=True, slots=True)
class _Run:
    """A run that is meant, or several local recordings that are one."""

    store: str
    held: Sequence[NeptuneRun]
    selection: Selection
    chosen: NameMap

    @property
    def key(self) -> str:
        """What identifies it: its own keys, and what selects rows of it."""
        keys = " ".join(sorted(each.key for each in self.held))
        parts = [self.selection.group, keys, self.selection.stage, str(self.chosen)]
        return "\n".join(part for part in parts if part)

    @property
    def locator(self) -> str:
        """How a person can name it."""
        store = self.store if self.store.startswith(PREFIX) else f"{PREFIX}{self.store}"
        return f"{store}#{self.selection.group or self.held[0].id}"

    @property
    def fault(self) -> SourceError | None:
        """Why it cannot be read; nothing where it was asked for, since its fault is an error then."""
        asked = self.selection.group is not None or self.selection.runs
        return None if asked else self.held[0].fault

    def read(self, options: ReadOptions) -> Tracked:
        """Read it.

        Raises:
            SourceError: when it cannot be read, or holds no hardware series.
        """
        for each in self.held:
            if each.fault is not None:
                raise each.fault
        contents: list[RunContent] = [content for each in self.held for content in each.contents()]
        return run_assembly.assemble_run(
            contents,
            name=self.selection.group or merge_outlines([each.outline() for each in self.held]).name,
            locator=self.locator,
            selection=self.selection,
            chosen=self.chosen,
            options=options,
        )
