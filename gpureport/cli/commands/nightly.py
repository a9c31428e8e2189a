"""`gpureport nightly`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport import __version__
from gpureport.cli.messages.internal_errors import InternalError, internal_errors, report_internal_error
from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.messages.verbosity import print_note
from gpureport.cli.options import night_date
from gpureport.cli.options.analysis_options import AnalysisOptions, analysis_options
from gpureport.cli.options.completion import complete_sources
from gpureport.cli.options.source_options import SourceOptions, source_options
from gpureport.cli.results import limit_checks, report_output
from gpureport.cli.results.night_reports import NightReports
from gpureport.cli.runs import analyses, named_runs, source_names
from gpureport.cli.runs.run_storing import store_run
from gpureport.errors import SettingsError, SourceError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpureport.findings import Check
    from gpureport.nightly.changes.latest_night import LatestNight
    from gpureport.nightly.history.night_history import History
    from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun
    from gpureport.recording import Recording
    from gpureport.store import Store

_BROKEN, _UNREADABLE, _CANNOT_JUDGE = 1, 3, 4
_ORDER = (_UNREADABLE, _BROKEN, _CANNOT_JUDGE)
"""Exit codes, the one that counts where several are due first."""


@dataclass(slots=True)
class _CapturedNight:
    """What the sources of tonight gave."""

    parts: "list[NightlyRun]" = field(default_factory=list)
    runs: "list[tuple[str, Recording]]" = field(default_factory=list)
    codes: set[int] = field(default_factory=set)

    def leave_out(self, faults: "Sequence[tuple[Recording, InternalError]]") -> None:
        """Take runs that gpureport failed on for parts without data."""
        failed = {id(recording): fault for recording, fault in faults}
        for source, recording in self.runs:
            if id(recording) in failed:
                self.add_missing(source, recording.run.step or "", failed[id(recording)].what)
        self.runs = [(source, recording) for source, recording in self.runs if id(recording) not in failed]

    def add_missing(self, source: str, step: str, what: str, code: int | None = None) -> None:
        """Add a part without data, and why there is none, with the exit code it asks for."""
        from gpureport.nightly.history.capture import capture_missing  # noqa: PLC0415 - loads numpy

        self.parts.append(capture_missing(source, step, what))
        if code is not None:
            self.codes.add(code)


@click.command()
@click.argument("source", nargs=-1, shell_complete=complete_sources)
@click.option("--site", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Folder for the pages.")
@click.option("--label", default="", metavar="NAME", help="Another name for the night, such as a commit or a build.")
@click.option("--date", "night", metavar="DATE", help="Date of the night, such as 2026-03-14 (default: today).")
@click.option("--policy", type=click.Path(path_type=Path), metavar="FILE", help="File with the limits of a night.")
@limit_checks.fail_on
@click.option("--fail-on-change", is_flag=True, help="Exit with 1 on the night in which a change for the worse shows.")
@analysis_options
@source_options
def nightly(  # noqa: PLR0913 - click hands over one argument an option
    *,
    source: tuple[str, ...],
    site: Path,
    label: str,
    night: str | None,
    policy: Path | None,
    fail_on: tuple[str, ...],
    fail_on_change: bool,
    analysis: AnalysisOptions,
    options: SourceOptions,
) -> int:
    """Add tonight's runs to the history of the store, and write its pages: reports, trends and changes.

    A SOURCE that is missing or cannot be read counts as a night without data. Without any SOURCE the pages are written
    again from the history. Metrics are followed by step (--step) and GPU model. Tonight's runs are checked against the
    limits of [[policy]], --policy and --fail-on. Changes are found in the history, not against a baseline.
    """
    from gpureport.nightly.changes.latest_night import summarize_latest_night  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.changes.trend import build_trends  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.history.night_history import History  # noqa: PLC0415 - loads pyarrow
    from gpureport.nightly.site.site_writing import write_site  # noqa: PLC0415 - loads jinja2

    if options.anonymise:
        raise SettingsError("--anonymise", "a history keeps the names of runs", "give runs other names with --name")
    date, now = night_date.parse_night(night), night_date.now()
    wanted = limit_checks.read_policy_without_baseline(policy or analysis.config, fail_on).without_baseline_limits()
    store = source_names.find_store(options)
    history = History(store.folder)
    tonight = _read(store, history, source, options, date)
    recordings = [recording for _, recording in tonight.runs]
    fresh = analyses.analyze_runs(recordings, analysis, fewest_runs=0) if recordings else None
    if fresh is not None:
        tonight.leave_out(fresh.faults)
    checks = (
        limit_checks.check_limits(wanted, fresh, throughput=options.tracker.throughput)
        if fresh is not None and wanted.entries
        else ()
    )
    if source:
        parts = [*_measured(tonight, fresh, options.tracker.throughput), *tonight.parts]
        history.append(_night(date, label, parts, checks, now))
    nights = history.read_latest()
    courses = build_trends(nights)
    whole = {each.page: each for each in history.read_all()}
    reports = NightReports(store=store, whole=whole, options=analysis, fresh=fresh)
    write_site(site, nights, courses, reports.render_night)
    found = summarize_latest_night(nights, courses)
    _print_changes(found)
    if checks:
        tonight.codes.add(_print_checks(checks))
    print_note(f"wrote {site / 'index.html'}")
    codes = tonight.codes | (_judge_changes(found) if fail_on_change else set())
    return next((code for code in _ORDER if code in codes), 0)


def _night(
    date: str, label: str, parts: "Sequence[NightlyRun]", checks: "Sequence[Check]", now: int
) -> "NightlyRecord":
    from gpureport.nightly.history.capture import capture_check  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.history.nightly_record import NightlyRecord  # noqa: PLC0415 - only with sources

    return NightlyRecord(
        date=date,
        label=label,
        command=report_output.typed_command(),
        version=__version__,
        runs=tuple(parts),
        checks=tuple(map(capture_check, checks)),
        recorded=now,
    )


def _read(
    store: "Store", history: "History", named: tuple[str, ...], options: SourceOptions, date: str
) -> _CapturedNight:
    """Return the runs of every source, and a part without data for each that gives none."""
    from gpureport.nightly.history.night_history import first_night_of_run  # noqa: PLC0415 - loads pyarrow

    tonight, recorded = _CapturedNight(), history.read_all() if named else []
    together = [(named, options)] if options.input.as_one_run and named else []
    for group, own in together or [((source,), own) for source, own in options.for_each(named)]:
        step = own.labels.step[0] if own.labels.step else ""
        try:
            found = list(_recordings(store, group, own))
        except SourceError as error:
            missing = any(source_names.is_missing(source) for source in group)
            what, code = ("no such file or run", _CANNOT_JUDGE) if missing else (error.what, _UNREADABLE)
            tonight.add_missing(group[0], step, what, code)
            click.echo(f"gpureport: {make_printable(str(error))}", err=True)
            continue
        for recording in found:
            if isinstance(recording, SourceError):
                tonight.add_missing(recording.where, step, recording.what, _UNREADABLE)
                click.echo(f"gpureport: {make_printable(str(recording))}", err=True)
                continue
            if isinstance(recording, InternalError):
                tonight.add_missing(recording.where, step, recording.what)
                report_internal_error(recording)
                continue
            first = first_night_of_run(recorded, recording.run.id)
            if first not in {None, date}:
                tonight.add_missing(group[0], step, f"this is the log of the night {first}", _CANNOT_JUDGE)
                click.echo(f"gpureport: {group[0]}: this is the log of the night {first}, not a new one", err=True)
            else:
                tonight.runs.append((group[0], recording))
    return tonight


def _recordings(
    store: "Store", group: tuple[str, ...], options: SourceOptions
) -> "Iterator[Recording | SourceError | InternalError]":
    """Yield the runs of a source, which the store holds then, or why one of them cannot be read.

    Raises:
        SourceError: when it is missing, cannot be read, or is no run of the store.
    """
    if len(group) == 1 and not source_names.is_source(group[0]):
        try:
            entry = store.named(group[0])
        except StoreError as error:
            raise SourceError(error.where, error.what, error.hint) from error
        yield store.read(entry)
        return
    readings = named_runs.find_readings(group, options)
    for reading in readings:
        try:
            with internal_errors(reading.locator):
                entry, _ = store_run(store, reading, force=False)
        except SourceError as error:
            if len(readings) == 1:
                raise
            yield error
        except InternalError as error:
            yield error
        else:
            yield store.read(entry)


def _measured(
    tonight: _CapturedNight, fresh: analyses.AnalysedRuns | None, throughput: str | None
) -> "Iterator[NightlyRun]":
    """Yield every run as the history keeps it. A run that gpureport fails on is a part without data."""
    from gpureport.cli.runs.run_analyzer import describe_run  # noqa: PLC0415 - loads numpy
    from gpureport.cli.runs.run_sampling import sample_runs  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.history import capture  # noqa: PLC0415 - as above

    for (source, recording), judged in zip(tonight.runs, fresh.runs if fresh is not None else (), strict=True):
        try:
            with internal_errors(describe_run(recording.run)):
                (run,) = sample_runs([judged], throughput)
                part = capture.capture_run(source, run)
        except InternalError as error:
            report_internal_error(error)
            part = capture.capture_missing(source, recording.run.step or "", error.what)
        yield part


def _print_changes(night: "LatestNight") -> None:
    """Print the headline of the newest night, and what to know with it."""
    from gpureport.nightly.site.night_wording import describe_headline, describe_latest_night  # noqa: PLC0415 - loads numpy

    click.echo(make_printable(describe_headline(night)))
    for line in describe_latest_night(night):
        click.echo(make_printable(f"  {line}"))


def _print_checks(checks: "Sequence[Check]") -> int:
    """Print what became of limits, and return what it means for the exit code."""
    from gpureport.checks import check_results  # noqa: PLC0415 - loads numpy

    click.echo(check_results.format_result_line(checks))
    return check_results.exit_code(checks)


def _judge_changes(night: "LatestNight") -> set[int]:
    """Return what the newest night means for a gate: broken, or that it cannot be judged in every figure."""
    return ({_BROKEN} if night.has_worse_change else set()) | (set() if night.is_fully_compared else {_CANNOT_JUDGE})
