"""`gpureport nightly`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from gpureport import __version__
from gpureport.cli import clock, gate
from gpureport.cli.command import command, sources
from gpureport.cli.messages import make_printable, print_note, show_stage
from gpureport.cli.nights import NightReports, measure_runs, read_night
from gpureport.cli.options import Options
from gpureport.cli.output import typed_command
from gpureport.cli.reading import words
from gpureport.cli.reading.analyses import analyze_runs
from gpureport.errors import SettingsError
from gpureport.places import RemotePath
from gpureport.redaction import redact_text

if TYPE_CHECKING:
    from gpureport.checks.verdict import Verdict
    from gpureport.findings import Check
    from gpureport.nightly.records import NightlyRecord
    from gpureport.recording import Run


@command("nightly", sources())
def nightly(source: tuple[str, ...], options: Options) -> int:
    """Add tonight's runs to the history of the store, write its pages, and check the runs as `check` does.

    Example: gpureport nightly runs/tonight --site site

    A SOURCE that is missing or cannot be read counts as a night without data. Without any SOURCE the pages are written
    again from the history. Each step (--step) on each GPU model has curves of its own. The rules of [[policy]],
    --policy and --fail-on are checked as by `gpureport check`, with the same exit codes; changes are measured against
    --baseline.
    """
    from gpureport.nightly import site  # noqa: PLC0415 - loads jinja2
    from gpureport.nightly.baselines import list_baselines  # noqa: PLC0415 - loads pyarrow
    from gpureport.nightly.history import History  # noqa: PLC0415 - as above
    from gpureport.nightly.records import NightlyRecord  # noqa: PLC0415 - as above

    _refuse_options(source, options)
    night, now = _parse_night(options.night), clock.now()
    if isinstance(options.site, RemotePath):
        options.site.check_bucket()
    site.check_site(options.site)
    rules = gate.read_rules(options)
    store = words.find_store(options)
    history = History(store.folder)
    earlier = history.read_all()
    tonight = read_night(store, earlier, source, options, night)
    fresh = analyze_runs([recording for _, recording in tonight.runs], options, fewest_runs=0)
    tonight.leave_out(fresh.faults)
    parts = [*measure_runs(tonight, fresh, options), *tonight.parts]
    accepted = [run for each in list_baselines(store) for run in each.runs]
    verdict = record = None
    baseline = gate.read_baseline(rules.baseline if source and fresh.runs else None, options, is_recorded=True)
    against = gate.compare_with_baseline(baseline, fresh, options, is_recorded=True)
    if source:
        draft = NightlyRecord(
            date=night,
            label=redact_text(options.label),
            command=typed_command(),
            version=__version__,
            runs=tuple(parts),
            recorded=now,
        )
        verdict = gate.judge_runs(rules, fresh, tonight.missing, against, options)
        asked = (options.fail_on_change, options.fail_on_standing_change)
        rules_on_change = [standing for standing in (False, True) if asked[standing]]
        change_checks = [
            check for each in rules_on_change for check in _check_changes(earlier, draft, accepted, standing=each)
        ]
        verdict = replace(verdict, checks=(*verdict.checks, *change_checks))
        record = _with_checks(draft, verdict)
        history.append(record)
    # with those that another process added meanwhile; one recorded as it once was has a new time
    nights = history.read_all(each for each in earlier if record is None or each.file != record.id)
    reports = NightReports(
        store=store,
        whole={each.page: each for each in nights},
        options=options,
        fresh=fresh,
        baseline=rules.baseline,
        against=against,
    )
    headline, state = _write_pages(nights, reports, record, accepted)
    _print_night(headline, state, verdict)
    print_note(f"wrote {options.site / 'index.html'}")
    if count := len(reports.postponed):
        what = f"{count} {'report' if count == 1 else 'reports'} of earlier nights"
        print_note(f"not written: {what}; --all-reports does")
    if verdict is None:
        return 0
    heading = [f"gpureport nightly {verdict.line}"] if verdict.checks else []
    gate.write_results(options, rules, verdict.checks, "nightly", [*heading, headline, *state])
    return verdict.exit_code if verdict.checks else 0


def _refuse_options(source: Sequence[str], options: Options) -> None:
    """Refuse options that a night cannot serve, and those of a gate where no run is checked.

    Raises:
        SettingsError: naming the option.
    """
    if options.anonymise:
        hint = "give runs other names with --name"
        raise SettingsError("--anonymise", "a history keeps the names of runs", hint, code="names_are_kept")
    gates = ("policy", "fail_on", "fail_on_change", "fail_on_standing_change", "junit", "summary")
    for name in () if source else gates:
        if getattr(options, name):
            option, what = f"--{name.replace('_', '-')}", "no run is checked without a SOURCE"
            raise SettingsError(option, what, "name tonight's log", code="needs_source")


def _parse_night(typed: str | None) -> str:
    """Return the date of a night as `2026-03-14`: as typed, else today's.

    Raises:
        SettingsError: when it is no date, or SOURCE_DATE_EPOCH is not a number of seconds.
    """
    if typed is None:
        return clock.today().isoformat()
    try:
        return datetime.strptime(typed, "%Y-%m-%d").replace(tzinfo=UTC).date().isoformat()
    except ValueError as error:
        raise SettingsError("--date", f"{typed!r} is no date", "write it as 2026-03-14", code="not_a_date") from error


def _check_changes(
    earlier: "Sequence[NightlyRecord]", draft: "NightlyRecord", accepted: "Sequence[Run]", *, standing: bool
) -> "tuple[Check, ...]":
    """Return a check for each job of tonight: whether this night, or an earlier one, shows that it got worse."""
    from gpureport.nightly.history import keep_latest_records  # noqa: PLC0415 - loads pyarrow
    from gpureport.nightly.latest import check_for_worse_change, summarize_latest_night  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.trends import build_trends  # noqa: PLC0415 - as above

    nights = keep_latest_records([*earlier, draft])
    found = summarize_latest_night(nights, build_trends(nights), accepted)
    groups = {run.group for run in draft.measured_runs}
    return tuple(check_for_worse_change(found, draft.date, groups, standing=standing))


def _write_pages(
    records: "Sequence[NightlyRecord]",
    reports: NightReports,
    record: "NightlyRecord | None",
    accepted: "Sequence[Run]",
) -> tuple[str, list[str]]:
    """Write the site; return the headline of this call, else of the newest night, and what to know with it."""
    from gpureport.nightly.history import keep_latest_records  # noqa: PLC0415 - loads pyarrow
    from gpureport.nightly.latest import (  # noqa: PLC0415 - loads numpy
        describe_headline,
        describe_latest_night,
        summarize_latest_night,
    )
    from gpureport.nightly.site import write_site  # noqa: PLC0415 - loads jinja2
    from gpureport.nightly.trends import build_trends  # noqa: PLC0415 - loads numpy

    nights, site = keep_latest_records(records), reports.options.site
    courses = build_trends(nights)
    with show_stage(f"Writing the pages in {site}"):
        write_site(site, nights, courses, reports.render_night, accepted)
    found = summarize_latest_night(nights, courses, accepted, record)
    return describe_headline(found), describe_latest_night(found)


def _print_night(headline: str, state: "Sequence[str]", verdict: "Verdict | None") -> None:
    """Print the headline of the night, what to know with it, and what became of the rules."""
    from gpureport.checks.verdict import render_text  # noqa: PLC0415 - loads numpy

    click.echo(make_printable(headline))
    for line in state:
        click.echo(make_printable(f"  {line}"))
    if verdict is not None and verdict.checks:
        click.echo(render_text(verdict.checks), nl=False)


def _with_checks(night: "NightlyRecord", verdict: "Verdict") -> "NightlyRecord":
    """Return a record with the checks of its rules; that a source has no data is told by its runs."""
    from gpureport.checks.verdict import HAS_DATA  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.records import capture_check  # noqa: PLC0415 - as above

    return replace(night, checks=tuple(capture_check(check) for check in verdict.checks if check.limit != HAS_DATA))
