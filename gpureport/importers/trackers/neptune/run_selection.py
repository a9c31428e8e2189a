"""Which runs of a store are selected: by locator, id, name, pattern, experiment, or the latest."""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.protocol.tracker import Selection, SkippedRun
from gpureport.importers.trackers.neptune.exports import exported_runs
from gpureport.importers.trackers.neptune.live import live_runs
from gpureport.importers.trackers.neptune.local import client_folders, scale_databases
from gpureport.importers.trackers.neptune.run_content import NeptuneRun, RunOutline
from gpureport.importers.trackers.neptune_hardware import namespaces
from gpureport.importers.trackers.neptune_hardware.name_map import NameMap
from gpureport.importers.trackers.start_order import sort_by_start
from gpureport.regular_files import UnsafeFileError, walk_folder

PREFIX = "neptune:"
_SERVER = "neptune://"
_WANTED = "give an export of neptune-exporter, or a .neptune folder"
_LISTED = 5


def list_files(source: Path) -> Iterable[Path]:
    """Yield files that may be Neptune's; hidden folders only if they are named."""
    if source.is_file():
        yield source
        return
    for place, folders, names in walk_folder(source):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (path for path in (place / name for name in sorted(names)) if path.is_file())


def open_store(source: str, selection: Selection) -> tuple[str, list[NeptuneRun], bool]:
    """Return the store that a locator names, its candidate runs, and whether the locator names a run."""
    if source.startswith(_SERVER):
        store, _, run = source.partition("#")
        found = live_runs.find_live_runs(store, run, selection)
        return store, found, len(found) == 1
    if selection.filter is not None:
        raise SettingsError(
            "--filter",
            "files of Neptune have no filter of their own",
            "name runs with --run, * is any",
            code="filter_needs_server",
        )
    store, run = _split_locator(source.removeprefix(PREFIX))
    path = Path(store)
    if not path.exists():
        raise SourceError(store, "no such file or folder", _WANTED, code="no_such_file")
    held = _find_runs(path) or (_find_runs(path / ".neptune") if (path / ".neptune").is_dir() else [])
    if not held:
        raise SourceError(store, "it holds no run of Neptune", _WANTED, code="no_runs")
    if selection.project is not None:
        held = [each for each in held if fnmatchcase(each.outline().project, selection.project)]
    if not held:
        raise SourceError(
            store,
            f"it holds no run of project {selection.project!r}",
            "--list shows what it holds",
            code="no_such_project",
        )
    return (store, _find_by_patterns(held, [run], store), True) if run else (store, held, len(held) == 1)


def _split_locator(locator: str) -> tuple[str, str]:
    """Return the path and the run of a locator; a `#` may be part of a path."""
    path, _, run = locator.rpartition("#")
    return (locator, "") if not path or Path(locator).exists() else (path, run)


def _find_runs(path: Path) -> list[NeptuneRun]:
    try:
        return [
            *exported_runs.find_exported_runs(path),
            *client_folders.find_local_runs(path),
            *scale_databases.find_scale_runs(path),
        ]
    except UnsafeFileError as error:
        raise SourceError(str(path), str(error.strerror), error.hint, code="not_a_regular_file") from error
    except PermissionError as error:
        raise SourceError(
            str(path), "no permission to read it", "change its permissions or copy it", code="no_permission"
        ) from error


def select_runs(
    held: Sequence[NeptuneRun], source: str, selection: Selection, chosen: NameMap, *, named: bool
) -> list[NeptuneRun]:
    """Return the selected runs: those named, else all with hardware series and all that cannot be read.

    Args:
        held: candidate runs.
        source: what a person called the store.
        selection: the options that select runs.
        chosen: the meaning of names that a person chose.
        named: whether the locator names a run.
    """
    found = _find_by_patterns(held, selection.runs, source) if selection.runs else list(held)
    if selection.experiment is not None:
        found = [each for each in found if fnmatchcase(each.outline().name, selection.experiment)]
    if not named and not selection.runs:
        watched = [
            each
            for each in found
            if each.fault or not each.outline().surveyed or hardware_namespaces(each.outline(), chosen)
        ]
        if selection.require_hardware and len(watched) < len(found):
            bare = next(each for each in found if each not in watched)
            raise SourceError(
                f"{source}#{bare.id}",
                "the run holds no hardware series",
                "leave out --require-hardware",
                code="no_hardware_series",
            )
        if found and not watched:
            what = f"none of its {len(found)} runs holds hardware series"
            raise SourceError(source, what, "--list shows what they hold", code="no_hardware_series")
        found = _sort_by_start(each for each in watched if each.fault or not each.outline().trashed)
    if not found:
        raise SourceError(source, "it holds no such run", "--list shows what it holds", code="unknown_run")
    if selection.latest is not None:
        newest = sorted(found, key=lambda each: each.outline().started or 0, reverse=True)[: selection.latest]
        kept = {each.key for each in newest}
        found = [each for each in found if each.key in kept]
    return found


def _sort_by_start(held: Iterable[NeptuneRun]) -> list[NeptuneRun]:
    """Return runs by start, those that started at once by name; those without a known start come last."""
    return sort_by_start(
        held,
        start=lambda each: None if each.fault else each.outline().started,
        name=lambda each: each.outline().name,
    )


def list_skipped_runs(
    held: Iterable[NeptuneRun], wanted: Sequence[NeptuneRun], selection: Selection, chosen: NameMap
) -> Iterator[SkippedRun]:
    """Yield the runs that are not read although no option excludes them, without those in the trash."""
    read = {each.key for each in wanted}
    for each in held:
        if each.fault or each.key in read:
            continue
        outline = each.outline()
        if selection.experiment is not None and not fnmatchcase(outline.name, selection.experiment):
            continue
        if not outline.trashed and outline.surveyed and not hardware_namespaces(outline, chosen):
            yield SkippedRun(name=each.id, reason="without hardware series")


def _find_by_patterns(held: Sequence[NeptuneRun], patterns: Iterable[str], source: str) -> list[NeptuneRun]:
    """Return the runs that patterns name, each once: an id, a name, one with `*`, or the beginning of an id."""
    found: dict[str, NeptuneRun] = {}
    for pattern in patterns:
        named = [each for each in held if pattern in {each.id, each.outline().name}]
        if not named and "*" in pattern:
            named = _sort_by_start(
                each for each in held if any(fnmatchcase(text, pattern) for text in (each.id, each.outline().name))
            )
        elif not named:
            named = [each for each in held if each.id.startswith(pattern)]
            if len(named) > 1:
                raise SourceError(
                    source,
                    f"several runs begin with {pattern!r}: {_format_ids(named)}",
                    "name one of them whole",
                    code="several_runs",
                )
        if not named:
            raise SourceError(
                source, f"it holds no run {pattern!r}", f"it holds {_format_ids(held)}", code="unknown_run"
            )
        found |= {each.key: each for each in named}
    return list(found.values())


def _format_ids(held: Sequence[NeptuneRun]) -> str:
    ids = [each.id for each in held]
    return ", ".join(ids[:_LISTED]) + (", …" if len(ids) > _LISTED else "")


def hardware_namespaces(outline: RunOutline, chosen: NameMap) -> list[namespaces.Namespace]:
    """Return the namespaces of hardware series of a run."""
    return namespaces.find_namespaces(outline.points, outline.scalars, chosen)
