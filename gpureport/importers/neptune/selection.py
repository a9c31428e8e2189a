"""Neptune as a tracker: its stores, and which of their runs are meant."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import ClassVar

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.neptune import client_log, exports, scale
from gpureport.importers.neptune.names import NameMap, Namespace, find_namespaces, read_name_map
from gpureport.importers.neptune.recording import record_run
from gpureport.importers.neptune.stored import StoredRun
from gpureport.importers.note_text import format_count
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.tracker import ListedRun, SelectedRuns, Selection, SkippedRun, Tracked
from gpureport.importers.tracker_series import sort_by_start
from gpureport.regular_files import UnsafeFileError, walk_folder

_PREFIX, _SERVER = "neptune:", "neptune://"
_WANTED = "give an export of neptune-exporter, or a .neptune folder"
_SEE = "--list shows what it holds"
_LISTED = 5
_FORMS = (
    (exports.is_export_file, exports.find_exported_runs),
    (client_log.is_operation_log, client_log.find_local_runs),
    (scale.is_scale_database, scale.find_scale_runs),
)


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
        if source.startswith(_PREFIX):
            return True
        try:
            return any(is_form(path) for path in _list_files(Path(source)) for is_form, _ in _FORMS)
        except OSError:
            return False

    def keeps_files(self, folder: Path) -> bool:
        """Return that no folder is one: files of runs lie in those of the store."""
        del folder
        return False

    def refuse_folder(self, folder: Path) -> None:
        """Refuse a folder in which Neptune's client was started."""
        if (folder / ".neptune").is_dir():
            what = "the folder holds runs of Neptune's client and no log"
            raise SourceError(str(folder), what, f"give {folder / '.neptune'}", code="folder_of_client")

    def runs(self, source: str, selection: Selection) -> SelectedRuns:
        """Return the runs that are meant, and those left out.

        Raises:
            SourceError: when there is no such store or run.
        """
        chosen = read_name_map(selection.map)
        store, held, named = _open_store(source, selection)
        wanted, left = _select_runs(held, source, selection, chosen, named=named)
        groups = [[each] for each in wanted] if selection.group is None else [wanted]
        return SelectedRuns(
            runs=tuple(_make_run(store, group, selection, chosen) for group in groups),
            skipped=tuple(SkippedRun(name=each.id, reason="without hardware series") for each in left),
            grouped=() if selection.group is None else tuple(each.id for each in wanted),
        )

    def listed(self, source: str, selection: Selection) -> list[ListedRun]:
        """Return what a store holds, with the reason of what cannot be read."""
        chosen = read_name_map(selection.map)
        return [_list_run(each, chosen) for each in _open_store(source, selection)[1]]


def _list_files(source: Path) -> Iterator[Path]:
    """Yield files that may be Neptune's; hidden folders only if they are named."""
    if source.is_file():
        yield source
        return
    for place, folders, names in walk_folder(source):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (path for path in (place / name for name in sorted(names)) if path.is_file())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A run that is meant, or several local recordings that are one."""

    key: str
    locator: str
    fault: SourceError | None
    read: Callable[[ReadOptions], Tracked]


def _make_run(store: str, held: Sequence[StoredRun], selection: Selection, chosen: NameMap) -> _Run:
    group = selection.group
    keys = " ".join(sorted(each.key for each in held))
    locator = f"{_PREFIX}{store.removeprefix(_PREFIX)}#{group or held[0].id}"

    def read(options: ReadOptions) -> Tracked:
        for each in held:
            if each.fault is not None:
                raise each.fault
        contents = [content for each in held for content in each.read()]
        return record_run(contents, group or held[0].name, locator, selection, chosen, options)

    return _Run(
        key="\n".join(filter(None, [group, keys, selection.stage, str(chosen)])),
        locator=locator,
        # the fault of a run that was asked for is an error, raised where it is read
        fault=None if group is not None or selection.runs else held[0].fault,
        read=read,
    )


def _list_run(held: StoredRun, chosen: NameMap) -> ListedRun:
    spaces, points = _spaces(held, chosen), held.points or {}
    if held.fault is not None:
        return ListedRun(id=held.id, name=held.id, status="cannot be read", started=None, fault=held.fault)
    described = [
        f"{space.stage or space.path}: {max(points[path] for path in space.leaves)} ticks, "
        f"{format_count(len(space.gpus), 'GPU')}"
        for space in spaces
    ]
    holds = "; ".join(described) or ("series not looked at" if held.points is None else "no hardware series")
    return ListedRun(
        id=held.id,
        name=held.name,
        status=held.status,
        started=held.started,
        points=None if held.points is None else sum(points[path] for space in spaces for path in space.leaves),
        holds=f"{held.project}  {holds}" if held.project else holds,
    )


def _spaces(held: StoredRun, chosen: NameMap) -> list[Namespace]:
    return find_namespaces(held.points or (), [*held.scalars, *held.moments], chosen)


def _open_store(source: str, selection: Selection) -> tuple[str, list[StoredRun], bool]:
    """Return the store that a locator names, its candidate runs, and whether the locator names a run."""
    if source.startswith(_SERVER):
        from gpureport.importers.neptune.live import find_live_runs  # noqa: PLC0415 - only here

        found = find_live_runs(source, selection.filter)
        return source.partition("#")[0], found, len(found) == 1
    if selection.filter is not None:
        what = "files of Neptune have no filter of their own"
        raise SettingsError("--filter", what, "name runs with --run, * is any", code="filter_needs_server")
    whole = source.removeprefix(_PREFIX)
    store, _, run = whole.rpartition("#")
    if not store or Path(whole).exists():
        # a # may be part of a path
        store, run = whole, ""
    path = Path(store)
    if not path.exists():
        raise SourceError(store, "no such file or folder", _WANTED, code="no_such_file")
    held = _find_runs(path) or (_find_runs(path / ".neptune") if (path / ".neptune").is_dir() else [])
    if not held:
        raise SourceError(store, "it holds no run of Neptune", _WANTED, code="no_runs")
    if selection.project is not None:
        held = [each for each in held if fnmatchcase(each.project, selection.project)]
        if not held:
            raise SourceError(store, f"it holds no run of project {selection.project!r}", _SEE, code="no_such_project")
    return (store, _find_by_patterns(held, [run], store), True) if run else (store, held, len(held) == 1)


def _find_runs(path: Path) -> list[StoredRun]:
    try:
        return [run for _, find in _FORMS for run in find(path)]
    except UnsafeFileError as error:
        raise SourceError(str(path), str(error.strerror), error.hint, code="not_a_regular_file") from error
    except PermissionError as error:
        hint = "change its permissions or copy it"
        raise SourceError(str(path), "no permission to read it", hint, code="no_permission") from error


def _select_runs(
    held: Sequence[StoredRun], source: str, selection: Selection, chosen: NameMap, *, named: bool
) -> tuple[list[StoredRun], list[StoredRun]]:
    """Return the selected runs, and those left out although no option excludes them.

    Where none is named, all with hardware series and all that cannot be read are selected, without those in the trash.
    """
    found = _find_by_patterns(held, selection.runs, source) if selection.runs else list(held)
    if selection.experiment is not None:
        found = [each for each in found if fnmatchcase(each.name, selection.experiment)]
    bare: list[StoredRun] = []
    if not named and not selection.runs:
        bare = [each for each in found if each.fault is None and each.points is not None and not _spaces(each, chosen)]
        if selection.require_hardware and bare:
            where, hint = f"{source}#{bare[0].id}", "leave out --require-hardware"
            raise SourceError(where, "the run holds no hardware series", hint, code="no_hardware_series")
        if found and len(bare) == len(found):
            what = f"none of its {len(found)} runs holds hardware series"
            raise SourceError(source, what, "--list shows what they hold", code="no_hardware_series")
        found = _sort(each for each in found if each not in bare and (each.fault or not each.trashed))
    if not found:
        raise SourceError(source, "it holds no such run", _SEE, code="unknown_run")
    if selection.latest is not None:
        newest = sorted(found, key=lambda each: each.started or 0, reverse=True)[: selection.latest]
        found = [each for each in found if each in newest]
    return found, [each for each in bare if not each.trashed]


def _sort(held: Iterable[StoredRun]) -> list[StoredRun]:
    """Return runs by start, those that started at once by name; those without a known start come last."""
    return sort_by_start(held, start=lambda each: each.started, name=lambda each: each.name)


def _find_by_patterns(held: Sequence[StoredRun], patterns: Iterable[str], source: str) -> list[StoredRun]:
    """Return the runs that patterns name, each once: an id, a name, one with `*`, or the beginning of an id."""
    found: dict[str, StoredRun] = {}
    for pattern in patterns:
        named = [each for each in held if pattern in {each.id, each.name}]
        if not named and "*" in pattern:
            named = _sort(each for each in held if fnmatchcase(each.id, pattern) or fnmatchcase(each.name, pattern))
        elif not named:
            named = [each for each in held if each.id.startswith(pattern)]
            if len(named) > 1:
                what = f"several runs begin with {pattern!r}: {_format_ids(named)}"
                raise SourceError(source, what, "name one of them whole", code="several_runs")
        if not named:
            raise SourceError(
                source, f"it holds no run {pattern!r}", f"it holds {_format_ids(held)}", code="unknown_run"
            )
        found |= {each.key: each for each in named}
    return list(found.values())


def _format_ids(held: Sequence[StoredRun]) -> str:
    return ", ".join(each.id for each in held[:_LISTED]) + (", …" if len(held) > _LISTED else "")
