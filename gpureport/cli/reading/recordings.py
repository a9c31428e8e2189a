"""What a person names on the command line, as recordings, and their analyses."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from gpureport.analysis import RULES, analyze
from gpureport.analysis.account import selection
from gpureport.analysis.account.cost import Prices, calculate_cost, read_prices
from gpureport.analysis.results import Analysis
from gpureport.analysis.rulebook import Rule
from gpureport.cli.account import summarise_run
from gpureport.cli.messages import (
    internal_errors,
    print_details,
    print_error,
    print_note,
    report_internal_error,
    show_stage,
)
from gpureport.cli.options import Options
from gpureport.cli.reading import given, readings, words
from gpureport.comparison.run import SampledRun, build_sampled_run
from gpureport.comparison.training import TrainingGoals, read_goals
from gpureport.errors import InternalError, SourceError, StoreError
from gpureport.importers.runs import make_names_distinct
from gpureport.importers.time_window import RunReading, cut_recording
from gpureport.recording import Recording, Run
from gpureport.settings import Settings, read_settings

Group = tuple[Sequence[str], Options]
"""Sources that are read together, and how."""
Finder = Callable[[Sequence[str], Options], list[RunReading]]
Check = Callable[[str, Sequence[RunReading]], None]
"""Takes a source and its runs before they are read, and raises an error where they do not fit."""
Kept = TypeVar("Kept")


def read_recordings(  # noqa: PLR0913 - each option by name
    sources: Sequence[str],
    options: Options,
    *,
    tolerant: bool = False,
    steps: bool = False,
    check: Check | None = None,
    named: Sequence[str] = (),
    step: str | None = None,
) -> list[Recording]:
    """Return every named run, from a file, a folder or the store.

    A run in a folder that is named by itself as well is not read with the folder. `tolerant` reports a log that cannot
    be read, and leaves it out where another log of its folder can be read. Sources that are `steps` to compare stay
    apart where they would be one run, and count once where they are named twice for a step. `named` are all sources of
    the command where these are some of them, and `step` is the step that a person named for all of them.
    """
    fetched = words.fetch_sources(sources)
    if steps and max(len(options.step), len(options.work)) <= 1 and not options.training:
        # nothing is said of each source in their order
        fetched = readings.drop_repeated_sources(fetched)

    def find(group: Sequence[str], own: Options) -> list[RunReading]:
        found, every = readings.find_readings(group, own), named or fetched
        if own.as_one_run:
            return found
        kept = readings.leave_out_named_runs(found, group[0], every)
        if steps:
            readings.label_repetitions(kept, group[0], every, hidden=options.anonymise)
        if check is not None:
            check(group[0], kept)
        return kept

    read = _read_groups(list_groups(fetched, options, steps=steps), find, tolerant=tolerant and not options.as_one_run)
    given.check_single_name(options, len(read))
    if step is not None:
        read = [replace(one, run=replace(one.run, step=step)) for one in read]
    if steps or step is not None:
        # names show a copy of a log, and may be hidden now
        read = readings.drop_repeated_runs(read)
    if options.anonymise:
        return hide_names(read)
    return read if options.name else make_run_names_distinct(read)


def hide_names(found: Sequence[Recording]) -> list[Recording]:
    """Return all runs of an output without the names of hosts, users, paths and GPUs."""
    from gpureport.report.runs.anonymisation import anonymise_recordings

    return anonymise_recordings(found)


def make_run_names_distinct(found: Sequence[Recording]) -> list[Recording]:
    runs = make_names_distinct([recording.run for recording in found])
    return [replace(recording, run=run) for recording, run in zip(found, runs, strict=True)]


def read_log(reading: RunReading) -> Recording:
    recording = reading.recording()
    print_details(summarise_run(recording.run))
    return recording


def read_stored(name: str, options: Options) -> list[Recording]:
    """Return the stored runs of a name, or their jobs that are wanted, with the labels of a table."""
    labels, found = given.build_labels(options), words.read_stored_runs(name, options)
    if options.job is not None:
        jobs = [(one, readings.find_job_windows(one, options.job)) for one in found]
        found = [cut_recording(one, window) for one, windows in jobs for window in windows]
    return [replace(one, run=labels.look_up(one.run)) for one in found]


def list_groups(sources: Sequence[str], options: Options, *, steps: bool = False) -> list[Group]:
    """Return the sources that are read together, each for itself unless all are one run, with their options."""
    if options.as_one_run:
        return [(sources, options)] if sources else []
    return [([source], own) for source, own in readings.pair_sources(sources, options, steps=steps)]


def read_group(
    group: Group,
    named: Callable[[str, Options], Iterable[Kept]],
    read: Callable[[RunReading], Kept],
    find: Finder = readings.find_readings,
) -> Iterator[Kept | SourceError | StoreError | InternalError]:
    """Yield what `named` makes of a stored run's name, or `read` of each run of sources, or why it cannot."""
    sources, own = group
    try:
        if not own.as_one_run and not words.is_source(sources[0], own):
            yield from named(sources[0], own)
            return
        if not own.as_one_run:
            words.note_stored_namesake(sources[0], own)
        found = find(sources, own)
    except (SourceError, StoreError, InternalError) as error:
        yield error
        return
    yield from readings.try_each(found, read)


def _read_groups(groups: Sequence[Group], find: Finder, *, tolerant: bool) -> list[Recording]:
    """Return every run; where that is tolerated, what cannot be read is left out if others of its group can.

    A fault of gpureport is left out if any run can be read.
    """
    read: list[Recording] = []
    faults: list[InternalError] = []
    for group in groups:
        own, unread, failed = list[Recording](), list[SourceError](), len(faults)
        for one in read_group(group, read_stored, read_log, find):
            if isinstance(one, Recording):
                own.append(one)
            elif not tolerant or isinstance(one, StoreError) or (group[1].strict and isinstance(one, SourceError)):
                raise one
            elif isinstance(one, SourceError):
                unread.append(one)
            else:
                faults.append(one)
        if unread and not own and len(faults) == failed:
            raise unread[0]
        # one reason may keep several runs from being read
        for text in dict.fromkeys(map(str, unread)):
            print_error(f"left out: {text}")
        read += own
    if faults and not read:
        raise faults[0]
    for each in faults:
        report_internal_error(each)
    return read


# --- their analyses


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysedRuns:
    """Runs with their analyses, the rules and kinds they were judged by, what a person says of training metrics.

    `faults` are the recordings that gpureport failed on, with the error of each.
    """

    runs: tuple[tuple[Recording, Analysis], ...]
    rules: tuple[Rule, ...]
    kinds: frozenset[str]
    goals: TrainingGoals
    faults: tuple[tuple[Recording, InternalError], ...] = ()


def read_run_prices(settings: Settings, options: Options) -> Prices:
    price = options.gpu_hour_price
    amount, currency = (price.amount, price.currency) if price else (None, "")
    prices = read_prices(settings).with_overrides(amount, options.carbon_intensity, currency)
    if price and not prices.currency:
        print_note(f"gpureport: --gpu-hour-price {price.amount:g} names no currency; write '{price.amount:g} EUR'")
    return prices


def analyze_runs(recordings: Sequence[Recording], options: Options, fewest_runs: int = 1) -> AnalysedRuns:
    """Return every recording with its analysis; on a terminal show progress.

    A recording that gpureport fails on is reported on standard error and left out, unless fewer than `fewest_runs`,
    without which the command can do nothing, are left: then its error is raised.
    """
    kinds = frozenset(selection.select_kinds(RULES, options.select, options.ignore))
    settings = read_settings(options.config)
    rules = selection.apply_settings(RULES, settings)
    for text in selection.list_ignored_settings(RULES, settings):
        print_note(text)
    goals = read_goals(settings).with_overrides(options.better, options.target)
    prices = read_run_prices(settings, options)
    runs: list[tuple[Recording, Analysis]] = []
    faults: list[tuple[Recording, InternalError]] = []
    with show_stage("Analysing") as say:
        for place, recording in enumerate(recordings, 1):
            say(f"Analysing {recording.run.name} ({place} of {len(recordings)})")
            try:
                with internal_errors(describe_run(recording.run)):
                    analysis = selection.keep_kinds(analyze(recording, rules), set(kinds))
                    runs.append((recording, replace(analysis, cost=calculate_cost(analysis, prices))))
            except InternalError as error:
                faults.append((recording, error))
    if faults and len(runs) < fewest_runs:
        raise faults[0][1]
    for _, fault in faults:
        report_internal_error(fault)
    return AnalysedRuns(runs=tuple(runs), rules=rules, kinds=kinds, goals=goals, faults=tuple(faults))


def describe_run(run: Run) -> str:
    """Return what a person knows a run by: its log, else its name."""
    return run.sources[0].locator if len(run.sources) == 1 else run.name


def sample_runs(runs: Sequence[tuple[Recording, Analysis]], key: str | None = None) -> list[SampledRun]:
    """Return runs as a comparison takes them; `key` is the training metric that counts work, whatever its name."""
    with ThreadPoolExecutor(min(len(runs), os.cpu_count() or 1) or 1) as pool:
        # NumPy lets go of the interpreter while it computes
        return list(pool.map(lambda run: build_sampled_run(run[0], run[1], key), runs))
