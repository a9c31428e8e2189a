"""What the sources of a night gave: the runs, and why one is missing."""

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.internal_errors import InternalError, internal_errors, report_internal_error
from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.options.source_options import SourceOptions
from gpureport.cli.runs import analyses, gate_sources, named_runs
from gpureport.cli.runs.run_storing import relabel_stored_run, store_run
from gpureport.errors import SourceError, StoreError, UnknownRunError
from gpureport.fetched_copies import name_by_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpureport.findings import Check
    from gpureport.importers.time_window import RunReading
    from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun
    from gpureport.recording import Recording
    from gpureport.store.store import Store


@dataclass(slots=True)
class CapturedNight:
    """What the sources of tonight gave.

    Attributes:
        parts: one for each source without data.
        runs: the others, each with its source.
        missing: a check for each source without data.
    """

    parts: "list[NightlyRun]" = field(default_factory=list)
    runs: "list[tuple[str, Recording]]" = field(default_factory=list)
    missing: "list[Check]" = field(default_factory=list)

    def leave_out(self, faults: "Sequence[tuple[Recording, InternalError]]") -> None:
        """Take runs that gpureport failed on for parts without data."""
        failed = {id(recording): fault for recording, fault in faults}
        for source, recording in self.runs:
            if id(recording) in failed:
                fault = failed[id(recording)]
                self.add_missing(source, recording.run.step or "", fault.what, run=fault.where, code=fault.code)
        self.runs = [(source, recording) for source, recording in self.runs if id(recording) not in failed]

    def add_missing(self, source: str, step: str, reason: str, *, run: str = "", code: str = "") -> None:
        """Add a part without data.

        Args:
            source: the source, as named.
            step: label of the step its run would have had.
            reason: why there are no data.
            run: what its check calls the run; the source when empty.
            code: the reason in one word.
        """
        from gpureport.checks.gate_verdict import build_missing_check  # noqa: PLC0415 - loads numpy
        from gpureport.nightly.history.capture import capture_missing  # noqa: PLC0415 - loads numpy

        self.parts.append(capture_missing(source, step, reason))
        self.missing.append(build_missing_check(run or source, reason, code))


def read_night(
    store: "Store", earlier: "Sequence[NightlyRecord]", named: tuple[str, ...], options: SourceOptions, date: str
) -> CapturedNight:
    """Return the runs of every source, or a part without data."""
    from gpureport.nightly.history.night_history import first_night_of_run  # noqa: PLC0415 - loads pyarrow

    tonight = CapturedNight()
    for group, own in gate_sources.group_sources(named, options):
        step = own.labels.step[0] if own.labels.step else ""
        source = name_by_url(group[0])
        stored = partial(_read_stored, store, own)
        for found in gate_sources.read_each_run(group, own, stored, partial(_store_and_read, store)):
            if isinstance(found, InternalError):
                tonight.add_missing(found.where, step, found.what, code=found.code)
                report_internal_error(found)
            elif isinstance(found, SourceError):
                tonight.add_missing(found.where, step, f"{found.what}; {found.hint}", code=found.code)
                click.echo(f"gpureport: {make_printable(str(found))}", err=True)
            elif (first := first_night_of_run(earlier, found.run.id)) not in {None, date}:
                what = f"this is the log of the night {first}, not a new one"
                tonight.add_missing(source, step, what, code="earlier_night")
                click.echo(f"gpureport: {make_printable(source)}: {what}", err=True)
            else:
                tonight.runs.append((source, found))
    if not options.labels.name:
        names = named_runs.make_run_names_distinct([recording for _, recording in tonight.runs])
        tonight.runs = [(source, named) for (source, _), named in zip(tonight.runs, names, strict=True)]
    return tonight


def _read_stored(store: "Store", options: SourceOptions, name: str) -> "list[Recording]":
    try:
        return [store.read(relabel_stored_run(store, name, options))]
    except UnknownRunError as error:
        # the pages of a night are read by people who typed no command
        what = "no recording at this path, nor a stored run of this name"
        raise StoreError(name, what, "see what gpureport record said", code=error.code) from error


def _store_and_read(store: "Store", reading: "RunReading") -> "Recording":
    return store.read(store_run(store, reading, force=False)[0])


def measure_runs(
    tonight: CapturedNight, fresh: analyses.AnalysedRuns, throughput: str | None
) -> "Iterator[NightlyRun]":
    """Yield every run as the history keeps it, or without data where gpureport fails."""
    from gpureport.cli.runs.run_analyzer import describe_run  # noqa: PLC0415 - loads numpy
    from gpureport.cli.runs.run_sampling import sample_runs  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.history import capture  # noqa: PLC0415 - as above

    for (source, recording), judged in zip(tonight.runs, fresh.runs, strict=True):
        try:
            with internal_errors(describe_run(recording.run)):
                (run,) = sample_runs([judged], throughput)
                yield capture.capture_run(source, run)
        except InternalError as error:
            report_internal_error(error)
            tonight.add_missing(source, recording.run.step or "", error.what, code=error.code)
