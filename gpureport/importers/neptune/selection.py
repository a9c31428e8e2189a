"""Neptune as a tracker: its stores, and which of their runs are meant."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import ClassVar, NamedTuple

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.account import format_count, list_first
from gpureport.importers.neptune import exports, local_folders
from gpureport.importers.neptune.names import NameMap, Namespace, find_namespaces, read_name_map
from gpureport.importers.neptune.recording import record_run
from gpureport.importers.neptune.stored import Stored
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.tracker import ListedRun, SelectedRuns, Selection, SkippedRun, Tracked
from gpureport.importers.tracker_series import sort_by_start
from gpureport.regular_files import code_system_error, walk_folder

_PREFIX, _SERVER = "neptune:", "neptune://"
_WANTED = "give an export of neptune-exporter, or a .neptune folder"
_SEE = "--list shows what it holds"
_LISTED = 5
_RECOGNISERS = (exports.is_export_file, local_folders.is_operation_log, local_folders.is_scale_database)
_FINDERS = (exports.find_exported_runs, local_folders.find_local_runs, local_folders.find_scale_runs)


class Neptune:
    """Reads what is left of runs of Neptune."""

    kind: ClassVar[str] = "neptune"
    title: ClassVar[str] = "Neptune"
    recognised_by: ClassVar[str] = (
        "An export, or a folder of one of Neptune's clients, by its content, or a locator `neptune:PATH`."
    )
    sample: ClassVar[str] = ""

    def claims(self, source: str) -> bool:
        """Return whether a locator, file or folder holds runs of Neptune; hidden folders count only if named."""
        if source.startswith(_PREFIX):
            return True
        try:
            files = _list_files(Path(source), hidden=False)
            return any(recognise(path) for path in files if path.is_file() for recognise in _RECOGNISERS)
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


def _list_files(source: Path, *, hidden: bool) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    for place, folders, names in walk_folder(source):
        folders[:] = sorted(name for name in folders if hidden or not name.startswith("."))
        yield from (place / name for name in sorted(names))


class _Run(NamedTuple):
    """A run that is meant, or several local recordings that are one."""

    key: str
    locator: str
    fault: SourceError | None
    read: Callable[[ReadOptions], Tracked]


def _make_run(store: str, held: Sequence[Stored], selection: Selection, chosen: NameMap) -> _Run:
    group = selection.group
    locator = f"{_PREFIX}{store.removeprefix(_PREFIX)}#{group or held[0].id}"

    def read(options: ReadOptions) -> Tracked:
        for each in held:
            if each.fault is not None:
                raise each.fault
        runs = [each.load() if each.load else each for each in held]
        return record_run(runs, group or held[0].name, locator, selection, chosen, options)

    keys = " ".join(sorted(each.key for each in held))
    key = "\n".join(filter(None, [group, keys, selection.stage, str(chosen)]))
    # the fault of a run that was asked for is an error, raised where it is read
    return _Run(key, locator, None if group is not None or selection.runs else held[0].fault, read)


def _list_run(held: Stored, chosen: NameMap) -> ListedRun:
    if held.fault is not None:
        return ListedRun(id=held.id, name=held.id, status="cannot be read", started=None, fault=held.fault)
    spaces, points = _find_spaces(held, chosen), held.points
    ticks = {space.stage or space.path: (max(points[path] for path in space.leaves), space.gpus) for space in spaces}
    described = [f"{name}: {most} ticks, {format_count(len(gpus), 'GPU')}" for name, (most, gpus) in ticks.items()]
    holds = "; ".join(described) or ("no hardware series" if held.looked else "series not looked at")
    state = "failed" if held.scalars.get("sys/failed") is True else str(held.scalars.get("sys/state", "")).lower()
    return ListedRun(
        id=held.id,
        name=held.name,
        status=held.kept or state or "status not recorded",
        started=held.started,
        points=sum(points[path] for space in spaces for path in space.leaves) if held.looked else None,
        holds=f"{held.project}  {holds}" if held.project else holds,
    )


def _find_spaces(held: Stored, chosen: NameMap) -> list[Namespace]:
    return find_namespaces(held.points, [*held.scalars, *held.moments], chosen)


def _open_store(source: str, selection: Selection) -> tuple[str, list[Stored], bool]:
    """Return the store that a locator names, its candidate runs, and whether one of them is named."""
    if source.startswith(_SERVER):
        from gpureport.importers.neptune.live import find_live_runs  # noqa: PLC0415 - only here

        found = find_live_runs(source, selection.filter)
        return source.partition("#")[0], found, len(found) == 1
    if selection.filter is not None:
        what = "files of Neptune have no filter of their own"
        raise SettingsError("--filter", what, "name runs with --run, * is any", code="filter_needs_server")
    whole = source.removeprefix(_PREFIX)
    # a # may be part of a path
    store, _, run = (whole, "", "") if "#" not in whole or Path(whole).exists() else whole.rpartition("#")
    path = Path(store)
    if not path.exists():
        raise SourceError(store, "no such file or folder", _WANTED, code="no_such_file")
    try:
        files = list(_list_files(path, hidden=True))
        held = [each for find in _FINDERS for each in find(files, path if path.is_dir() else path.parent)]
    except OSError as error:
        what, hint = error.strerror or "cannot be read", getattr(error, "hint", "change its permissions or copy it")
        raise SourceError(store, what, hint, code=code_system_error(error, "cannot_read")) from error
    if not held:
        raise SourceError(store, "it holds no run of Neptune", _WANTED, code="no_runs")
    held = [each for each in held if selection.project is None or fnmatchcase(each.project, selection.project)]
    if not held:
        raise SourceError(store, f"it holds no run of project {selection.project!r}", _SEE, code="no_such_project")
    return (store, _find_by_patterns(held, [run], store), True) if run else (store, held, len(held) == 1)


def _select_runs(
    held: Sequence[Stored], source: str, selection: Selection, chosen: NameMap, *, named: bool
) -> tuple[list[Stored], list[Stored]]:
    """Return the selected runs, and those left out although no option excludes them.

    Where none is named, all with hardware series and all that cannot be read are selected, without those in the trash.
    """
    found = _find_by_patterns(held, selection.runs, source) if selection.runs else list(held)
    if selection.experiment is not None:
        found = [each for each in found if fnmatchcase(each.name, selection.experiment)]
    bare: list[Stored] = []
    if not named and not selection.runs:
        bare = [each for each in found if each.fault is None and each.looked and not _find_spaces(each, chosen)]
        if selection.require_hardware and bare:
            where, hint = f"{source}#{bare[0].id}", "leave out --require-hardware"
            raise SourceError(where, "the run holds no hardware series", hint, code="no_hardware_series")
        if found and len(bare) == len(found):
            what = f"none of its {len(found)} runs holds hardware series"
            raise SourceError(source, what, _SEE, code="no_hardware_series")
        trashed = [each for each in found if each.fault is None and each.scalars.get("sys/trashed") is True]
        found = _sort(each for each in found if each not in bare and each not in trashed)
        bare = [each for each in bare if each not in trashed]
    if not found:
        raise SourceError(source, "it holds no such run", _SEE, code="unknown_run")
    if selection.latest is not None:
        newest = sorted(found, key=lambda each: each.started or 0, reverse=True)[: selection.latest]
        found = [each for each in found if each in newest]
    return found, bare


def _sort(held: Iterable[Stored]) -> list[Stored]:
    """Return runs by start, those that started at once by name; those without a known start come last."""
    return sort_by_start(held, start=lambda each: each.started, name=lambda each: each.name)


def _find_by_patterns(held: Sequence[Stored], patterns: Iterable[str], source: str) -> list[Stored]:
    """Return the runs that patterns name, each once: an id, a name, one with `*`, or the beginning of an id."""
    found: dict[str, Stored] = {}
    for pattern in patterns:
        named = [each for each in held if pattern in {each.id, each.name}]
        if not named and "*" in pattern:
            named = _sort(each for each in held if fnmatchcase(each.id, pattern) or fnmatchcase(each.name, pattern))
        elif not named:
            named = [each for each in held if each.id.startswith(pattern)]
            if len(named) > 1:
                what = f"several runs begin with {pattern!r}: {list_first([each.id for each in named], _LISTED)}"
                raise SourceError(source, what, "name one of them whole", code="several_runs")
        if not named:
            hint = f"it holds {list_first([each.id for each in held], _LISTED)}"
            raise SourceError(source, f"it holds no run {pattern!r}", hint, code="unknown_run")
        found |= {each.key: each for each in named}
    return list(found.values())
