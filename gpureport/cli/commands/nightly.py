"""`gpureport nightly`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import click

from gpureport import __version__
from gpureport.checks.verdict import HAS_DATA, Verdict, render_text
from gpureport.cli import clock, gate
from gpureport.cli.messages import make_printable, print_note, show_stage
from gpureport.cli.nights import NightReports, read_night
from gpureport.cli.options import Options
from gpureport.cli.output import typed_command
from gpureport.cli.reading import given, words
from gpureport.cli.reading.analyses import analyze_runs
from gpureport.errors import SettingsError
from gpureport.findings import Check
from gpureport.nightly.baselines import list_baselines
from gpureport.nightly.history import History, keep_latest_records
from gpureport.nightly.latest import (
    check_for_worse_change,
    describe_headline,
    describe_latest_night,
    summarize_latest_night,
)
from gpureport.nightly.records import NightlyRecord, capture_check
from gpureport.nightly.site import check_site, write_site
from gpureport.nightly.trends import build_trends
from gpureport.places import RemotePath
from gpureport.recording import Run
from gpureport.redaction import redact_text

_GATES = ("policy", "fail_on", "fail_on_change", "fail_on_standing_change", "junit", "summary")


def nightly(source: tuple[str, ...], options: Options) -> int:
    """Record tonight's runs, write the pages, and check the runs; return the exit code of the verdict."""
    _refuse_options(source, options)
    night, now = _parse_night(options.night), clock.now()
    if isinstance(options.site, RemotePath):
        options.site.check_bucket()
    check_site(options.site)
    rules = gate.read_rules(options)
    store = words.find_store(options)
    history = History(store.folder)
    earlier = history.read_all()
    tonight = read_night(store, earlier, source, options, night)
    fresh = analyze_runs([recording for _, recording in tonight.runs], options, fewest_runs=0)
    parts = tonight.measure(fresh, options)
    accepted = [run for each in list_baselines(store) for run in each.runs]
    verdict = record = None
    baseline = gate.read_baseline(rules.baseline if source and fresh.runs else None, options)
    against = gate.compare_with_baseline(baseline, fresh, options)
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
        verdict = Verdict(checks=(*verdict.checks, *_check_changes(earlier, draft, accepted, options)))
        # that a source has no data is told by the runs of the record
        kept = [capture_check(check) for check in verdict.checks if check.limit != HAS_DATA]
        record = replace(draft, checks=tuple(kept))
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
    click.echo(make_printable(headline))
    for line in state:
        click.echo(make_printable(f"  {line}"))
    if verdict is not None and verdict.checks:
        click.echo(render_text(verdict.checks), nl=False)
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
    """Refuse options that a night cannot serve, and those of a gate where no run is checked."""
    if options.anonymise:
        hint = "give runs other names with --name"
        raise SettingsError("--anonymise", "a history keeps the names of runs", hint, code="names_are_kept")
    if option := "" if source else given.find_given(options, _GATES):
        what = "no run is checked without a SOURCE"
        raise SettingsError(option, what, "name tonight's log", code="needs_source")


def _parse_night(typed: str | None) -> str:
    """Return the date of a night as `2026-03-14`: as typed, else today's."""
    if typed is None:
        return clock.today().isoformat()
    try:
        return datetime.strptime(typed, "%Y-%m-%d").replace(tzinfo=UTC).date().isoformat()
    except ValueError as error:
        raise SettingsError("--date", f"{typed!r} is no date", "write it as 2026-03-14", code="not_a_date") from error


def _check_changes(
    earlier: Sequence[NightlyRecord], draft: NightlyRecord, accepted: Sequence[Run], options: Options
) -> list[Check]:
    asked = [options.fail_on_change, options.fail_on_standing_change]
    if not any(asked):
        return []
    nights = keep_latest_records([*earlier, draft])
    found = summarize_latest_night(nights, build_trends(nights), accepted)
    groups = {run.group for run in draft.measured_runs}
    kinds = [standing for standing in (False, True) if asked[standing]]
    return [each for standing in kinds for each in check_for_worse_change(found, draft.date, groups, standing=standing)]


def _write_pages(
    records: Sequence[NightlyRecord], reports: NightReports, record: NightlyRecord | None, accepted: Sequence[Run]
) -> tuple[str, list[str]]:
    """Write the site; return the headline of this call, else of the newest night, and what to know with it."""
    nights, site = keep_latest_records(records), reports.options.site
    courses = build_trends(nights)
    with show_stage(f"Writing the pages in {site}"):
        write_site(site, nights, courses, reports.render_night, accepted)
    found = summarize_latest_night(nights, courses, accepted, record)
    return describe_headline(found), describe_latest_night(found)
