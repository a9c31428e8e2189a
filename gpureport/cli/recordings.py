"""Reads and analyses the named runs."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from gpureport.analysis import RULES, analyze
from gpureport.analysis.account import selection
from gpureport.analysis.account.cost import Prices, calculate_cost, read_prices
from gpureport.analysis.results import Analysis
from gpureport.analysis.rulebook import Rule
from gpureport.cli import messages, sources, words
from gpureport.cli.account import summarise_run
from gpureport.cli.options import Options
from gpureport.comparison.run import SampledRun, build_sampled_run
from gpureport.comparison.training import TrainingGoals, read_goals
from gpureport.errors import InternalError, SourceError, StoreError
from gpureport.importers.account import find_note_code
from gpureport.importers.runs import make_names_distinct
from gpureport.importers.time_window import RunReading
from gpureport.record_folder import RUN_FILE
from gpureport.recording import Recording
from gpureport.regular_files import is_folder, path_exists
from gpureport.settings import Settings, read_settings

Finder = Callable[[Sequence[str], Options], list[RunReading]]
Unread = SourceError | InternalError
Kept = TypeVar("Kept")


def read_recordings(  # noqa: PLR0913 - each option by name
    named: Sequence[str],
    options: Options,
    *,
    tolerant: bool = False,
    steps: bool = False,
    every: Sequence[str] = (),
    step: str | None = None,
) -> list[Recording]:
    """Return the named runs. A run that is named both directly and by its folder is read only once.

    `tolerant` skips an unreadable log if another log in its folder is readable. `steps` treats each folder as a step.
    If `named` lists only the sources of one `step`, `every` lists all sources of the command.
    """
    fetched = sources.fetch_sources(named)
    if steps and max(len(options.step), len(options.work)) <= 1 and not options.training:
        # no option has a separate value for each source
        fetched = _drop_repeated_sources(fetched)

    def find(group: Sequence[str], own: Options) -> list[RunReading]:
        found = sources.find_readings(group, own)
        if own.as_one_run:
            return found
        kept = _leave_out_named_runs(found, group[0], every or fetched)
        if steps:
            _label_repetitions(kept, group[0], fetched, hidden=options.anonymise)
            words.refuse_parallel_jobs([each.labels.step for each in kept], group[0], group, options)
        return kept

    read = _read_all(read_groups(fetched, options, words.read_stored, read_log, find, steps=steps), tolerant=tolerant)
    sources.check_single_name(options, len(read))
    if step is not None:
        read = [replace(one, run=replace(one.run, step=step)) for one in read]
    # hide names only now, because a log that is named twice is recognised by name
    return name_runs(drop_repeated_runs(read) if steps or step is not None else read, options)


def _drop_repeated_sources(named: Sequence[str]) -> list[str]:
    kept: dict[Path | str, str] = {}
    places = [Path(source).resolve() if path_exists(source) else source for source in named]
    for place, source in zip(places, named, strict=True) if len({*places}) > 1 else ():
        if isinstance(place, Path) and place in kept:
            messages.print_note(f"gpureport: {source}: named twice, counted once")
        kept.setdefault(place, source)
    return list(kept.values()) or list(named)


def drop_repeated_runs(found: Sequence[Recording]) -> list[Recording]:
    """Of runs that are named twice or, within a step, have the same rows, keep only the first."""
    kept, notes = dict[tuple[object, ...], Recording](), list[str]()
    for one in found:
        run, logs = one.run, tuple(Path(source.locator).resolve() for source in one.run.sources)
        key = run.step, run.started, run.ended, run.id, logs
        alike = (kept[each] for each in kept if run.step is not None and run.gpus and each[:3] == key[:3])
        same = kept.get(key) or next((each for each in alike if each.by_device() == one.by_device()), None)
        if same is not None:
            said = "named twice" if key in kept else f"same rows as {same.run.sources[0].locator}"
            step = "" if run.step is None else f" for {run.step}"
            notes.append(f"gpureport: {run.sources[0].locator}: {said}{step}, counted once")
        kept.setdefault(key, same or one)
    distinct = list({id(one): one for one in kept.values()}.values())
    if len(distinct) == 1 and found[0].run.step is None:
        return list(found)
    messages.print_note(*notes)
    return distinct


def _leave_out_named_runs(found: Sequence[RunReading], source: str, named: Sequence[str]) -> list[RunReading]:
    if not is_folder(source):
        return list(found)
    places = {other: Path(other).resolve() for other in named if path_exists(other)}
    inner = {other: place for other, place in places.items() if Path(source).resolve() in place.parents}
    logs = [Path(each.locator).resolve() for each in found]
    taken = {other: [place in (log, *log.parents) for log in logs] for other, place in inner.items()}
    kept = [each for at, each in enumerate(found) if not any(each[at] for each in taken.values())]
    if found and not kept:
        raise SourceError(source, "all its runs are also named", "leave out the folder", code="named_twice")
    if names := [other for other, each in taken.items() if any(each)]:
        messages.print_note(f"gpureport: {source}: runs named twice are counted once: {', '.join(names)}")
    return kept


def _label_repetitions(found: Sequence[RunReading], source: str, named: Sequence[str], *, hidden: bool) -> None:
    folders = {Path(each.locator).parent for each in found}
    names = [place.name for place in {Path(other).resolve() for other in named}]
    are_recorded = all((folder / RUN_FILE).is_file() for folder in folders)
    if min(len(names), len(folders)) <= 1 or not is_folder(source) or not are_recorded:
        return
    name = Path(source).resolve().name
    label = f"step_{named.index(source) + 1}" if hidden else name if names.count(name) == 1 else source
    for each in found:
        if not (each.labels.step or each.file_labels.step):
            each.labels = replace(each.labels, step=label)


def name_runs(found: Sequence[Recording], options: Options) -> list[Recording]:
    if options.anonymise:
        from gpureport.report.runs.anonymisation import anonymise_recordings

        return anonymise_recordings(found)
    runs = [one.run for one in found] if options.name else make_names_distinct([one.run for one in found])
    return [replace(one, run=run) for one, run in zip(found, runs, strict=True)]


def read_log(reading: RunReading) -> Recording:
    recording = reading.recording()
    copies = [note for note in recording.run.quality.notes if find_note_code(note) == "copied_log"]
    messages.print_note(*(f"gpureport: {note}" for note in copies))
    messages.print_note(*summarise_run(recording.run), least=messages.Verbosity.VERBOSE)
    return recording


def read_groups(  # noqa: PLR0913 - a reader for each kind of source
    named: Sequence[str],
    options: Options,
    of_stored: Callable[[str, Options], Iterable[Kept]],
    of_log: Callable[[RunReading], Kept],
    find: Finder = sources.find_readings,
    *,
    steps: bool = False,
) -> Iterator[tuple[Sequence[str], Options, Iterator[Kept | Unread | StoreError]]]:
    """Yield each group of sources with its options and its runs or errors."""

    def read(group: Sequence[str], own: Options) -> Iterator[Kept | Unread | StoreError]:
        try:
            if not own.as_one_run and not words.is_source(group[0], own):
                yield from of_stored(group[0], own)
                return
            if not own.as_one_run:
                words.note_stored_namesake(group[0], own)
            found = find(group, own)
        except (SourceError, StoreError, InternalError) as error:
            yield error
            return
        yield from sources.try_each(found, of_log)

    together = [(named, options)] if named and options.as_one_run else []
    apart = [] if options.as_one_run else sources.pair_sources(named, options, steps=steps)
    for group, own in [*together, *(([source], own) for source, own in apart)]:
        yield group, own, read(group, own)


def _read_all(groups: Iterable[tuple[Any, Options, Iterable[Any]]], *, tolerant: bool) -> list[Recording]:
    read, faults = list[Recording](), list[InternalError]()
    for _, own, found in groups:
        kept, unread, failed = list[Recording](), list[SourceError](), len(faults)
        for one in found:
            if isinstance(one, Recording):
                kept.append(one)
            elif isinstance(one, InternalError) and tolerant and not own.as_one_run:
                faults.append(one)
            elif not tolerant or own.as_one_run or own.strict or isinstance(one, StoreError):
                raise one
            else:
                unread.append(one)
        if unread and not kept and len(faults) == failed:
            raise unread[0]
        # several runs may fail with the same error
        for text in dict.fromkeys(map(str, unread)):
            messages.print_error(f"left out: {text}")
        read += kept
    if faults and not read:
        raise faults[0]
    for each in faults:
        messages.report_internal_error(each)
    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysedRuns:
    runs: tuple[tuple[Recording, Analysis], ...]
    rules: tuple[Rule, ...]
    kinds: frozenset[str]
    goals: TrainingGoals
    faults: tuple[tuple[Recording, InternalError], ...] = ()


def read_run_prices(settings: Settings, options: Options) -> Prices:
    amount, currency = options.gpu_hour_price or (None, "")
    prices = read_prices(settings).with_overrides(amount, options.carbon_intensity, currency)
    if amount is not None and not prices.currency:
        messages.print_note(f"gpureport: --gpu-hour-price {amount:g} has no currency; write '{amount:g} EUR'")
    return prices


def analyze_runs(recordings: Sequence[Recording], options: Options, fewest_runs: int = 1) -> AnalysedRuns:
    kinds = frozenset(selection.select_kinds(RULES, options.select, options.ignore))
    settings = read_settings(options.config)
    rules = selection.apply_settings(RULES, settings)
    for text in selection.list_ignored_settings(RULES, settings):
        messages.print_note(text)
    goals = read_goals(settings).with_overrides(options.better, options.target)
    prices = read_run_prices(settings, options)
    runs: list[tuple[Recording, Analysis]] = []
    faults: list[tuple[Recording, InternalError]] = []
    with messages.show_stage("Analysing") as say:
        for place, recording in enumerate(recordings, 1):
            run = recording.run
            say(f"Analysing {run.name} ({place} of {len(recordings)})")
            try:
                # errors name the log, because users know that name
                with messages.internal_errors(run.sources[0].locator if len(run.sources) == 1 else run.name):
                    analysis = selection.keep_kinds(analyze(recording, rules), set(kinds))
                    runs.append((recording, replace(analysis, cost=calculate_cost(analysis, prices))))
            except InternalError as error:
                faults.append((recording, error))
    if faults and len(runs) < fewest_runs:
        raise faults[0][1]
    for _, fault in faults:
        messages.report_internal_error(fault)
    return AnalysedRuns(runs=tuple(runs), rules=rules, kinds=kinds, goals=goals, faults=tuple(faults))


def sample_runs(runs: Sequence[tuple[Recording, Analysis]], key: str | None = None) -> list[SampledRun]:
    with ThreadPoolExecutor(min(len(runs), os.cpu_count() or 1) or 1) as pool:
        # NumPy releases the GIL while it computes
        return list(pool.map(lambda run: build_sampled_run(run[0], run[1], key), runs))
