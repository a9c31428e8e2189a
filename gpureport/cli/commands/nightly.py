"""`gpureport nightly`."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gpureport import __version__
from gpureport.cli.messages.progress import show_stage
from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.messages.verbosity import print_note
from gpureport.cli.options import night_date
from gpureport.cli.options.analysis_options import AnalysisOptions, analysis_options
from gpureport.cli.options.completion import complete_files
from gpureport.cli.options.gate_options import GateOptions, gate_options
from gpureport.cli.options.source_options import SourceOptions, source_options
from gpureport.cli.options.written_paths import OutputType, WritingCommand
from gpureport.cli.results import gate as gates
from gpureport.cli.results import report_output
from gpureport.cli.results.captured_night import measure_runs, read_night
from gpureport.cli.results.night_reports import NightReports
from gpureport.cli.runs import analyses
from gpureport.cli.sources import source_names
from gpureport.errors import SettingsError
from gpureport.nightly.site import site_files
from gpureport.places import RemotePath
from gpureport.redaction import redact_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpureport.checks.gate_verdict import Verdict
    from gpureport.findings import Check
    from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun
    from gpureport.places import Place
    from gpureport.recording import Run

_SITE = OutputType(
    is_folder=True,
    files=(site_files.INDEX, site_files.MARKER),
    folders=(site_files.REPORTS, site_files.FIGURES),
)
"""The folder of the pages; those who write other files there keep away from the names of its own."""


@click.command(cls=WritingCommand)
@click.argument("source", nargs=-1, shell_complete=complete_files)
@click.option("--site", type=_SITE, required=True, metavar="DIR", help="Folder for the pages.")
@click.option("--label", default="", metavar="NAME", help="Another name for the night, such as a commit or a build.")
@click.option("--date", "night", metavar="DATE", help="Date of the night, such as 2026-03-14 (default: today).")
@click.option(
    "--all-reports", is_flag=True, help="Write all reports that DIR lacks, not only those of the last 7 nights."
)
@gate_options
@click.option("--fail-on-change", is_flag=True, help="Exit with 1 on the night in which a change for the worse shows.")
@click.option("--fail-on-standing-change", is_flag=True, help="Exit with 1 as long as a change for the worse holds.")
@analysis_options
@source_options
def nightly(  # noqa: PLR0913 - click hands over one argument an option
    *,
    source: tuple[str, ...],
    site: "Place",
    label: str,
    night: str | None,
    all_reports: bool,
    gate: GateOptions,
    fail_on_change: bool,
    fail_on_standing_change: bool,
    analysis: AnalysisOptions,
    options: SourceOptions,
) -> int:
    """Add tonight's runs to the history of the store, write its pages, and check the runs as `check` does.

    Example: gpureport nightly runs/tonight --site site

    A SOURCE that is missing or cannot be read counts as a night without data. Without any SOURCE the pages are written
    again from the history. Each step (--step) on each GPU model has curves of its own. The rules of [[policy]],
    --policy and --fail-on are checked as by `gpureport check`, with the same exit codes; changes are measured against
    --baseline.
    """
    from gpureport.nightly.history.baselines import list_baselines  # noqa: PLC0415 - loads pyarrow
    from gpureport.nightly.history.night_history import History  # noqa: PLC0415 - as above

    if options.anonymise:
        raise SettingsError(
            "--anonymise",
            "a history keeps the names of runs",
            "give runs other names with --name",
            code="names_are_kept",
        )
    if not source:
        _refuse_gate_without_source(gate, fail_on_change=fail_on_change or fail_on_standing_change)
    date, now = night_date.parse_night(night), night_date.now()
    if isinstance(site, RemotePath):
        site.check_bucket()
    site_files.check_site(site)
    rules = gates.read_rules(gate, analysis.config)
    store = source_names.find_store(options)
    history = History(store.folder)
    earlier = history.read_all()
    tonight = read_night(store, earlier, source, options, date)
    fresh = analyses.analyze_runs([recording for _, recording in tonight.runs], analysis, fewest_runs=0)
    tonight.leave_out(fresh.faults)
    parts = [*measure_runs(tonight, fresh, options.tracker.throughput), *tonight.parts]
    accepted = [run for each in list_baselines(store) for run in each.runs]
    verdict = record = None
    baseline = gates.read_baseline(rules.baseline if source and fresh.runs else None, options, is_recorded=True)
    against = gates.compare_with_baseline(baseline, fresh, analysis, options, is_recorded=True)
    if source:
        draft = _night(date, label, parts, now)
        verdict = gates.judge_runs(rules, fresh, tonight.missing, against, options.tracker.throughput)
        asked = [standing for standing in (False, True) if (fail_on_change, fail_on_standing_change)[standing]]
        change_checks = [check for each in asked for check in _check_changes(earlier, draft, accepted, standing=each)]
        verdict = replace(verdict, checks=(*verdict.checks, *change_checks))
        record = _with_checks(draft, verdict)
        history.append(record)
    # with those that another process added meanwhile; one recorded as it once was has a new time
    nights = history.read_all(each for each in earlier if record is None or each.file != record.id)
    reports = NightReports(
        store=store,
        whole={each.page: each for each in nights},
        options=analysis,
        fresh=fresh,
        baseline=rules.baseline,
        against=against,
        throughput=options.tracker.throughput,
        every=all_reports,
    )
    headline, state = _write_pages(site, nights, reports, record, accepted)
    _print_night(headline, state, verdict)
    print_note(f"wrote {site / 'index.html'}")
    if count := len(reports.postponed):
        print_note(
            f"not written: {count} {'report' if count == 1 else 'reports'} of earlier nights; --all-reports does"
        )
    if verdict is not None:
        heading = [f"gpureport nightly {verdict.line}"] if verdict.checks else []
        gates.write_results(gate, rules, verdict.checks, "nightly", [*heading, headline, *state])
    return verdict.exit_code if verdict is not None and verdict.checks else 0


def _refuse_gate_without_source(gate: GateOptions, *, fail_on_change: bool) -> None:
    """Refuse options of a gate where no run is checked.

    Raises:
        SettingsError: naming the option.
    """
    typed = {
        "--policy": gate.policy,
        "--fail-on": gate.fail_on,
        "--fail-on-change": fail_on_change,
        "--junit": gate.junit,
        "--summary": gate.summary,
    }
    for option, value in typed.items():
        if value:
            raise SettingsError(option, "no run is checked without a SOURCE", "name tonight's log", code="needs_source")


def _check_changes(
    earlier: "Sequence[NightlyRecord]", draft: "NightlyRecord", accepted: "Sequence[Run]", *, standing: bool
) -> "tuple[Check, ...]":
    """Return a check for each job of tonight: whether this night, or an earlier one, shows that it got worse."""
    from gpureport.nightly.changes.latest_night import summarize_latest_night  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.changes.trend import build_trends  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.history.night_history import keep_latest_records  # noqa: PLC0415 - loads pyarrow
    from gpureport.nightly.site.change_check import check_for_worse_change  # noqa: PLC0415 - as above

    nights = keep_latest_records([*earlier, draft])
    found = summarize_latest_night(nights, build_trends(nights), accepted)
    groups = {(run.step, run.model) for run in draft.measured_runs}
    return tuple(check_for_worse_change(found, draft.date, groups, standing=standing))


def _write_pages(
    site: "Place",
    records: "Sequence[NightlyRecord]",
    reports: NightReports,
    record: "NightlyRecord | None",
    accepted: "Sequence[Run]",
) -> tuple[str, list[str]]:
    """Write the site; return the headline of this call, else of the newest night, and what to know with it."""
    from gpureport.nightly.changes.latest_night import (  # noqa: PLC0415 - loads numpy
        summarize_latest_night,
        summarize_record,
    )
    from gpureport.nightly.changes.trend import build_trends  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.history.night_history import keep_latest_records  # noqa: PLC0415 - loads pyarrow
    from gpureport.nightly.site.night_wording import describe_headline, describe_latest_night  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.site.site_writing import write_site  # noqa: PLC0415 - loads jinja2

    nights = keep_latest_records(records)
    courses = build_trends(nights)
    with show_stage(f"Writing the pages in {site}"):
        write_site(site, nights, courses, reports.render_night, accepted)
    found = summarize_record(record, nights, accepted) if record else summarize_latest_night(nights, courses, accepted)
    return describe_headline(found), describe_latest_night(found)


def _print_night(headline: str, state: "Sequence[str]", verdict: "Verdict | None") -> None:
    """Print the headline of the night, what to know with it, and what became of the rules."""
    from gpureport.checks.formats import check_summary  # noqa: PLC0415 - loads numpy

    click.echo(make_printable(headline))
    for line in state:
        click.echo(make_printable(f"  {line}"))
    if verdict is not None and verdict.checks:
        click.echo(check_summary.render_text(verdict.checks), nl=False)


def _with_checks(night: "NightlyRecord", verdict: "Verdict") -> "NightlyRecord":
    """Return a record with the checks of its rules; that a source has no data is told by its runs."""
    from gpureport.checks.gate_verdict import HAS_DATA  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.history.capture import capture_check  # noqa: PLC0415 - as above

    return replace(night, checks=tuple(capture_check(check) for check in verdict.checks if check.limit != HAS_DATA))


def _night(date: str, label: str, parts: "Sequence[NightlyRun]", now: int) -> "NightlyRecord":
    from gpureport.nightly.history.nightly_record import NightlyRecord  # noqa: PLC0415 - only with sources

    return NightlyRecord(
        date=date,
        label=redact_text(label),
        command=report_output.typed_command(),
        version=__version__,
        runs=tuple(parts),
        recorded=now,
    )
