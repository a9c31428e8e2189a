"""To which of several runs a host log or a training log belongs: to those whose time it shares."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.merging.log_groups import shared_time
from gpureport.importers.merging.node_names import name_machine
from gpureport.importers.merging.shared_devices import any_overlap
from gpureport.importers.protocol.importer import Input, Outcome, ReadOptions, TrainingFile

NO_SHARED_TIME = "shares no time with a GPU log"
OTHER_ZONE = "its times name a zone and those of the GPU logs none, or the other way round; give it with --tz"
SEVERAL_RUNS = "may belong to any of several runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """When a run took place.

    Attributes:
        log: its main log.
        outcome: what is known of it.
    """

    log: Input
    outcome: Outcome


def choose_runs(
    path: Path, runs: Sequence[RunTimes], outcome_for: Callable[[RunTimes], Outcome | None], *, zone_known: bool
) -> list[int] | str:
    """Return the places of the runs that a file belongs to, or why it belongs to none.

    Runs one after the other may share a file. Of runs at the same time the one is meant whose log is named alike.

    Args:
        path: the file.
        runs: the runs.
        outcome_for: what is known of the file when it is read beside a run; None where it has no time.
        zone_known: whether stamps without a zone have one.
    """
    found, has_other_zone = [], False
    for place, run in enumerate(runs):
        outcome = outcome_for(run)
        comparable = outcome is not None and (
            zone_known or (outcome.timezone is None) == (run.outcome.timezone is None)
        )
        if outcome is not None and comparable and shared_time(run.outcome.span, outcome.span) >= 0:
            found.append(place)
        has_other_zone |= outcome is not None and not comparable
    if not found:
        return OTHER_ZONE if has_other_zone else NO_SHARED_TIME
    spans = [runs[place].outcome.span for place in found]
    if not any_overlap(spans):
        return found
    name = name_machine(path)
    named = [place for place in found if name and name_machine(runs[place].log.path) == name]
    return named if len(named) == 1 else SEVERAL_RUNS


def read_host_times(given: Input, options: ReadOptions) -> Callable[[RunTimes], Outcome | None]:
    """Return what tells when a host log was written; one without dates is dated by the run, and read for each."""

    def read(placed: ReadOptions) -> Outcome | None:
        try:
            extraction = given.importer.extract(RawFile(given.path), placed)
            for _ in extraction.batches():
                pass
        except SourceError:
            return None
        return extraction.outcome()

    alone = read(options)
    if alone is not None and not alone.quality.rejected and not alone.quality.notes:
        # every row has a date, and none that could be read in two ways
        return lambda _: alone
    return lambda run: read(options.for_companion(run.outcome.span))


def read_training_times(file: TrainingFile, options: ReadOptions) -> Callable[[RunTimes], Outcome | None]:
    """Return what tells when a training log was written; None for one without dates."""
    from gpureport.importers.training import TrainingLog  # noqa: PLC0415 - most runs have none

    try:
        read = TrainingLog().read(RawFile(file.path), options, 0, file.locator)
    except SourceError:
        return lambda _: None
    return lambda _: read.outcome if read.dated else None
