"""Neptune as a tracker: exports, local folders of its clients, and servers of one's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gpureport.errors import SourceError
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.tracker import Chosen, Listed, Selection, Tracked
from gpureport.importers.trackers.neptune import assembly, selecting
from gpureport.importers.trackers.neptune.content import Content, Held, Outline, joined
from gpureport.importers.trackers.neptune.exports import export_files
from gpureport.importers.trackers.neptune.hardware import mapping, namespaces
from gpureport.importers.trackers.neptune.hardware.mapping import Map
from gpureport.importers.trackers.neptune.local import local, scale
from gpureport.importers.trackers.neptune.selecting import PREFIX

_FORMS = (export_files.claims, local.claims, scale.claims)


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
            return any(form(path) for path in selecting.files(Path(source)) for form in _FORMS)
        except OSError:
            return False

    def runs(self, source: str, selection: Selection) -> Chosen:
        """Return the runs that are meant, and those left out.

        Raises:
            SourceError: when there is no such store or run.
        """
        chosen = mapping.read(selection.map)
        store, held, named = selecting.held_in(source, selection)
        wanted = selecting.wanted(held, source, selection, chosen, named=named)
        groups = [[each] for each in wanted] if selection.group is None else [wanted]
        left_out = () if named or selection.runs else selecting.left_out(held, wanted, selection, chosen)
        return Chosen(runs=tuple(_Run(store, group, selection, chosen) for group in groups), left_out=tuple(left_out))

    def listed(self, source: str, selection: Selection) -> list[Listed]:
        """Return what a store holds, with the reason of what cannot be read."""
        chosen = mapping.read(selection.map)
        return [_listed(each, chosen) for each in selecting.held_in(source, selection)[1]]


def _listed(held: Held, chosen: Map) -> Listed:
    if held.fault is not None:
        return Listed(id=held.id, name=held.id, status="cannot be read", started=None, holds=held.fault.what)
    outline = held.outline()
    spaces = selecting.spaces(outline, chosen)
    points = sum(outline.points.get(path, 0) for space in spaces for path in space.leaves)
    nothing = "no hardware series" if outline.surveyed else "series not looked at"
    holds = "; ".join(_space(space, outline) for space in spaces) or nothing
    project = f"{outline.project}  " if outline.project else ""
    return Listed(
        id=held.id,
        name=outline.name,
        status=outline.status or "status not recorded",
        started=outline.started,
        points=points if outline.surveyed else None,
        holds=project + holds,
    )


def _space(space: namespaces.Namespace, outline: Outline) -> str:
    ticks = max(outline.points.get(path, 0) for path in space.leaves)
    gpus = f"{space.gpus} GPU{'' if space.gpus == 1 else 's'}"
    return f"{space.stage or space.path}: {ticks} ticks, {gpus}"


@dataclass(frozen=True, slots=True)
class _Run:
    """A run that is meant, or several local recordings that are one."""

    store: str
    held: Sequence[Held]
    selection: Selection
    chosen: Map

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

    def read(self, placement: ReadOptions) -> Tracked:
        """Read it.

        Raises:
            SourceError: when it cannot be read, or holds no hardware series.
        """
        for each in self.held:
            if each.fault is not None:
                raise each.fault
        contents: list[Content] = [content for each in self.held for content in each.contents()]
        return assembly.tracked(
            contents,
            name=self.selection.group or joined([each.outline() for each in self.held]).name,
            locator=self.locator,
            selection=self.selection,
            chosen=self.chosen,
            placement=placement,
        )
