"""`gpureport nightly`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

import click

from gpureport import __version__
from gpureport.checks.verdict import HAS_DATA, Verdict, build_missing_check, render_text
from gpureport.cli import gate
from gpureport.cli.gate import Baseline, explain_missing, read_each_run
from gpureport.cli.messages import (
    internal_errors,
    make_printable,
    now,
    print_error,
    print_note,
    report_internal_error,
    show_stage,
    today,
)
from gpureport.cli.options import Options
from gpureport.cli.output import build_report, typed_command
from gpureport.cli.reading import given, words
from gpureport.cli.reading.recordings import (
    AnalysedRuns,
    analyze_runs,
    describe_run,
    make_run_names_distinct,
    sample_runs,
)
from gpureport.cli.reading.words import relabel_stored_run, store_run
from gpureport.errors import InternalError, SettingsError, SourceError, StoreError, UnknownRunError
from gpureport.fetched_copies import name_by_url
from gpureport.findings import Check
from gpureport.nightly import records
from gpureport.nightly.baselines import list_baselines
from gpureport.nightly.history import History, first_night_of_run, keep_latest_records
from gpureport.nightly.latest import (
    check_for_worse_change,
    describe_headline,
    describe_latest_night,
    summarize_latest_night,
)
from gpureport.nightly.records import NightlyRecord, NightlyRun, capture_check
from gpureport.nightly.site import BACK, check_site, write_site
from gpureport.nightly.trends import build_trends
from gpureport.places import RemotePath
from gpureport.recording import Recording, Run
from gpureport.redaction import redact_text
from gpureport.report.formats.html import render
from gpureport.report.model.comparison_parts import EarlierComparison
from gpureport.report.sections.steps.pairs import compare_with_earlier
from gpureport.store.store import Store

_NEWEST = 7
"""Newest dates of a history whose missing reports are made again: each takes an analysis of its runs, and of those of
the week before."""
_WEEK = 7
"""Days back to the night that a night is compared with; else the nearest later one is taken."""


@dataclass(slots=True)
class CapturedNight:
    """What the sources of tonight gave: runs with their source, and a part and a check for each source without data."""

    parts: list[NightlyRun] = field(default_factory=list)
    runs: list[tuple[str, Recording]] = field(default_factory=list)
    missing: list[Check] = field(default_factory=list)

    def measure(self, fresh: AnalysedRuns, options: Options) -> list[NightlyRun]:
        """Return every part of the night as the history keeps it; runs that gpureport failed on are without data."""
        faults = {id(recording): fault for recording, fault in fresh.faults}
        judged = {id(run[0]): run for run in fresh.runs}
        measured = []
        for source, recording in self.runs:
            fault = faults.get(id(recording))
            try:
                if fault is not None:
                    raise fault
                with internal_errors(describe_run(recording.run)):
                    (run,) = sample_runs([judged[id(recording)]], options.throughput)
                    measured.append(records.capture_run(source, run))
            except InternalError as error:
                if fault is None:
                    report_internal_error(error)
                self.add_missing(source, recording.run.step or "", error.what, run=error.where, code=error.code)
        return [*measured, *self.parts]

    def add_missing(self, source: str, step: str, reason: str, *, run: str = "", code: str = "") -> None:
        """Add a source without data, with the step that its run would have had; its check may be called as a `run`."""
        self.parts.append(records.capture_missing(source, step, reason))
        self.missing.append(build_missing_check(run or source, reason, code))


def read_night(
    store: Store, earlier: Sequence[NightlyRecord], named: tuple[str, ...], options: Options, night: str
) -> CapturedNight:
    """Return the runs of every source, or a part without data."""

    def read_stored(name: str, own: Options) -> list[Recording]:
        try:
            return [store.read(relabel_stored_run(store, name, own))]
        except UnknownRunError as error:
            # the pages of a night are read by people who typed no command
            what = "no recording at this path, nor a stored run of this name"
            raise StoreError(name, what, "see what gpureport record said", code=error.code) from error

    tonight = CapturedNight()
    read = read_each_run(named, options, read_stored, lambda log: store.read(store_run(store, log, force=False)[0]))
    for word, own, found in read:
        step, source = own.step[0] if own.step else "", name_by_url(word)
        if not isinstance(found, Recording):
            where, what, code = explain_missing(found)
            tonight.add_missing(where, step, what, code=code)
            if isinstance(found, SourceError):
                print_error(str(found))
        elif (first := first_night_of_run(earlier, found.run.id)) not in {None, night}:
            what = f"this is the log of the night {first}, not a new one"
            tonight.add_missing(source, step, what, code="earlier_night")
            print_error(f"{source}: {what}")
        else:
            tonight.runs.append((source, found))
    if not options.name:
        names = make_run_names_distinct([recording for _, recording in tonight.runs])
        tonight.runs = [(source, run) for (source, _), run in zip(tonight.runs, names, strict=True)]
    return tonight


@dataclass(frozen=True, kw_only=True)
class NightReports:
    """Renders reports: from the fresh runs of tonight, else from the runs of the store.

    `whole` is every record of the history by its page, `baseline` the name of what tonight is set against. `postponed`
    are dates of earlier nights whose reports were not made, though the store holds their runs.
    """

    store: Store
    whole: Mapping[str, NightlyRecord]
    options: Options
    fresh: AnalysedRuns
    baseline: str | None
    against: Baseline
    postponed: list[str] = field(default_factory=list)

    def render_night(self, night: NightlyRecord) -> bytes | None:
        """Return the report of a night with all it recorded.

        None where a run of it is gone or cannot be served; for older nights only if every one is wanted.
        """
        whole = self.whole[night.page]
        if not self.options.all_reports and night.date not in self._newest:
            if all(self.store.get(str(run.run_id)) for run in whole.measured_runs):
                self.postponed.append(night.date)
            return None
        try:
            with internal_errors(f"the report of {night.date}"):
                runs = self._analyse({run.run_id: run.name for run in whole.measured_runs if run.run_id})
                if runs is None:
                    return None
                # what a person said of tonight's runs counts only beside the baseline
                content = build_report(runs, Options(), command=night.command, checks=whole.checks)
                return render(content, back=BACK, earlier=tuple(self._compare(whole, runs))).encode()
        except InternalError as error:
            report_internal_error(error)
            return None

    @cached_property
    def _newest(self) -> list[str]:
        return sorted({night.date for night in self.whole.values()})[-_NEWEST:]

    def _analyse(self, wanted: Mapping[str, str]) -> AnalysedRuns | None:
        """Return runs by their ids, with the names of the night; None where one is missing."""
        at_hand = {run.run.id: (run, analysis) for run, analysis in self.fresh.runs}
        if at_hand.keys() >= wanted.keys():
            return replace(self.fresh, runs=tuple(at_hand[run_id] for run_id in wanted))
        entries = [entry for run_id in wanted if (entry := self.store.get(run_id)) is not None]
        if len(entries) < len(wanted):
            return None
        found = [self.store.read(entry) for entry in entries]
        named = [replace(each, run=replace(each.run, name=wanted[each.run.id])) for each in found]
        return analyze_runs(named, self.options, fewest_runs=len(named))

    def _compare(self, night: NightlyRecord, runs: AnalysedRuns) -> Iterator[EarlierComparison]:
        fresh = {recording.run.id for recording, _ in self.fresh.runs}
        if self.baseline is not None and fresh and fresh == {run.run_id for run in night.measured_runs}:
            yield from self._compare_with_baseline(redact_text(self.baseline), runs)
        yield from self._compare_with_last_week(night, runs)

    def _compare_with_baseline(self, name: str, runs: AnalysedRuns) -> Iterator[EarlierComparison]:
        """Yield the comparison of each step with the baseline, or why there is none; a run without one is a step."""
        if self.against.reason:
            note = f"Not compared: {self.against.reason.rstrip('?.')}."
            yield EarlierComparison(title=f"Baseline {name}", notes=(note,))
            return
        groups: dict[str, list[int]] = {}
        for place, (recording, _) in enumerate(runs.runs):
            groups.setdefault(recording.run.step or recording.run.name, []).append(place)
        for step, places in groups.items():
            later = sample_runs([runs.runs[place] for place in places], self.options.throughput)
            title = f"Baseline {name}{f' · {step}' if step else ''}"
            yield compare_with_earlier(title, self.against.runs, later, runs.goals, is_baseline=True)

    def _compare_with_last_week(self, night: NightlyRecord, runs: AnalysedRuns) -> Iterator[EarlierComparison]:
        day, week = date.fromisoformat(night.date), timedelta(days=_WEEK)
        nights = [each for each in self.whole.values() if day - week <= date.fromisoformat(each.date) < day]
        by_id = {recording.run.id: (recording, analysis) for recording, analysis in runs.runs}
        for step, model in dict.fromkeys((run.step, run.model) for run in night.measured_runs):
            job = f" · {step}" if step else ""
            first, before = self._find_week_ago(nights, (step, model))
            if not before:
                notes = ("No run of this job in the week before is stored.",)
                yield EarlierComparison(title=f"Last week{job}", notes=notes)
                continue
            found = analyze_runs(before, self.options, fewest_runs=0)
            if found.runs:
                own = [run for run in night.measured_runs if (run.step, run.model) == (step, model)]
                later = sample_runs([by_id[str(run.run_id)] for run in own])
                yield compare_with_earlier(f"Night of {first}{job}", sample_runs(found.runs), later, runs.goals)

    def _find_week_ago(self, nights: Iterable[NightlyRecord], group: tuple[str, str]) -> tuple[str, list[Recording]]:
        """Return the night a week ago, else the next one, that measured a job, and its stored runs."""
        for each in sorted(nights, key=lambda night: night.date):
            runs = [run for run in each.measured_runs if (run.step, run.model) == group]
            entries = [entry for run in runs if (entry := self.store.get(str(run.run_id))) is not None]
            if entries:
                return each.date, [self.store.read(entry) for entry in entries]
        return "", []


_GATES = ("policy", "fail_on", "fail_on_change", "fail_on_standing_change", "junit", "summary")


def nightly(source: tuple[str, ...], options: Options) -> int:
    """Record tonight's runs, write the pages, and check the runs; return the exit code of the verdict."""
    _refuse_options(source, options)
    night, recorded = _parse_night(options.night), now()
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
            recorded=recorded,
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
        return today().isoformat()
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
