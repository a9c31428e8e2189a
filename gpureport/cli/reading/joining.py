"""Which sources are one run, which lie within another or are named twice, and which repeat a step."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpureport.cli.messages import print_note
from gpureport.cli.options import Options
from gpureport.cli.reading.given import build_read_options, find_kind, give_each
from gpureport.errors import SourceError
from gpureport.importers.runs import assign_training_logs, find_source_runs
from gpureport.importers.sources import find_tracker, identify_training_logs, recognise_companion
from gpureport.importers.time_window import RunReading
from gpureport.record_folder import RUN_FILE
from gpureport.recording import Recording
from gpureport.regular_files import is_folder, path_exists


def pair_sources(sources: Sequence[str], options: Options, *, steps: bool = False) -> list[tuple[str, Options]]:
    """Return each source that is read as runs; what belongs to these runs is in its options.

    Host logs, training logs and further GPU logs of a run, named beside its main log, become `--host` and
    `--training` of it, whatever order they stand in. Sources that are `steps` to compare stay apart.
    """
    logs, hosts, training = split_companions(sources, options)
    named = options
    if len(logs) > 1 and len(options.training) not in {0, len(logs)}:
        # not one for each source in their order: each goes to the run whose time it shares
        training = [*training, *map(str, options.training)]
        options = replace(options, training=())
    every = give_each(logs, options)
    files = [place for place, (source, own) in enumerate(every) if _is_log(source, own)]
    if len(sources) < 2 or not files or len(files) + len(hosts) + len(training) < 2:  # noqa: PLR2004 - nothing to join
        return give_each(logs, named)
    labelled = max(len(options.step), len(options.work)) > 1
    try:
        joined = _join([every[place] for place in files], hosts, training, steps=steps or labelled)
    except SourceError:
        give_each(logs, named)
        if hosts or training:
            raise
        # each source then says itself what is wrong with it
        return every
    found = dict(zip(files, joined, strict=True))
    pairs = [(source, found.get(place, own)) for place, (source, own) in enumerate(every)]
    kept = [(source, own) for source, own in pairs if own is not None]
    # logs of one run, of which its work was stated
    return kept if len(kept) > 1 else [(source, replace(own, is_common=options.is_common)) for source, own in kept]


def split_companions(sources: Sequence[str], options: Options) -> tuple[list[str], list[Path], list[str]]:
    """Return the sources with GPUs or no files, the host logs among them, and the training logs."""
    alone = len(sources) < 2 or find_kind(options)  # noqa: PLR2004 - nothing beside it
    parts: dict[str | None, list[str]] = {None: [], "host": [], "training": []}
    for source in sources:
        parts[None if alone or not path_exists(source) else recognise_companion(Path(source))].append(source)
    if not parts[None]:
        return list(sources), [], []
    # the order in which they are named must not matter
    return parts[None], sorted(map(Path, parts["host"])), sorted(parts["training"])


def _is_log(source: str, options: Options) -> bool:
    return source != "-" and path_exists(source) and not find_kind(options) and find_tracker(source) is None


def _join(
    pairs: Sequence[tuple[str, Options]], hosts: Sequence[Path], training: Sequence[str], *, steps: bool
) -> list[Options | None]:
    """Return each source's options with what belongs to its runs; None where it belongs to others."""
    options, sources = pairs[0][1], [source for source, _ in pairs]
    placement = build_read_options(options)
    found = find_source_runs(sources, [*options.host, *hosts], options=placement, steps=steps)
    flat = [inputs for runs in found.runs for inputs in runs]
    trained = iter(assign_training_logs(identify_training_logs(training), flat, placement))
    joined: list[Options | None] = []
    for (source, own), runs in zip(pairs, found.runs, strict=True):
        logs = dict.fromkeys(file.locator for _ in runs for file in next(trained))
        parts = [each.locator for inputs in runs for each in inputs if each.locator != source]
        extra = dict.fromkeys(part for part in parts if Path(source) not in Path(part).parents)
        read = replace(own, host=tuple(map(Path, extra)), training=(*own.training, *map(Path, logs)))
        joined.append(read if runs else None)
        if named := [locator for locator in extra if locator in sources]:
            print_note(f"gpureport: read as one run: {', '.join([source, *named])}")
    return joined


def drop_repeated_sources(sources: Sequence[str]) -> list[str]:
    """Return sources without what was named before, however written; say which that is.

    One that is named beside no other stays twice: a person compares it with itself.
    """
    places = [Path(source).resolve() if path_exists(source) else source for source in sources]
    if len({*places}) == 1:
        return list(sources)
    kept = []
    for number, (place, source) in enumerate(zip(places, sources, strict=True)):
        if isinstance(place, Path) and place in places[:number]:
            print_note(f"gpureport: {source}: named twice, counted once")
        else:
            kept.append(source)
    return kept


def drop_repeated_runs(found: Sequence[Recording]) -> list[Recording]:
    """Return runs without those that were named twice for one step; say which these are.

    A copy of a log, whose run has the same id, is a run of its own. A run without a step that stands beside no other
    stays twice: a person compares it with itself.
    """
    kept: dict[tuple[object, ...], Recording] = {}
    repeated = []
    for one in found:
        run = one.run
        logs = tuple(Path(source.locator).resolve() for source in run.sources)
        key = (run.step, run.id, run.started, run.ended, logs)
        repeated += [run] if key in kept else []
        kept.setdefault(key, one)
    if len(kept) == 1 and found[0].run.step is None:
        return list(found)
    for run in repeated:
        step = "" if run.step is None else f" for {run.step}"
        print_note(f"gpureport: {run.sources[0].locator}: named twice{step}, counted once")
    return list(kept.values())


def leave_out_named_runs(readings: Sequence[RunReading], source: str, named: Sequence[str]) -> list[RunReading]:
    """Return the runs of a source that no other `named` source within its folder names; say which those name."""
    if not is_folder(source):
        return list(readings)
    folder = Path(source).resolve()
    places = {other: Path(other).resolve() for other in named if path_exists(other)}
    inner = {other: place for other, place in places.items() if folder in place.parents}
    above = [{log, *log.parents} for log in (Path(reading.locator).resolve() for reading in readings)]
    kept = [reading for reading, places_of in zip(readings, above, strict=True) if not places_of & {*inner.values()}]
    if readings and not kept:
        what, hint = "every run in it is named as well", "leave the folder out, or what lies in it"
        raise SourceError(source, what, hint, code="named_twice")
    if taken := [other for other, place in inner.items() if any(place in places_of for places_of in above)]:
        print_note(f"gpureport: {source}: counted once, as named: {', '.join(taken)}")
    return kept


def label_repetitions(readings: Sequence[RunReading], source: str, named: Sequence[str], *, hidden: bool) -> None:
    """Label the recordings of a folder beside other sources as repetitions of one step, not by its name if `hidden`.

    Folders that `gpureport record` did not write, and runs with a step label, stay as they are.
    """
    folders = {Path(reading.locator).parent for reading in readings}
    sources = {Path(other).resolve() for other in named}
    if len(sources) < 2 or len(folders) < 2 or not is_folder(source):  # noqa: PLR2004 - several
        return
    if not all((folder / RUN_FILE).is_file() for folder in folders):
        return
    place = Path(source).resolve()
    is_single = sum(other.name == place.name for other in sources) == 1
    label = f"step_{named.index(source) + 1}" if hidden else place.name if is_single else source
    for reading in readings:
        if not (reading.labels.step or reading.file_labels.step):
            reading.labels = replace(reading.labels, step=label)
