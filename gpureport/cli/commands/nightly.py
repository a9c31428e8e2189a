"""`gpureport nightly`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

import click

from gpureport import __version__
from gpureport.analysis.results import Analysis
from gpureport.checks.verdict import HAS_DATA, Verdict, build_missing_check, render_text
from gpureport.cli import gate
from gpureport.cli.messages import (
    count,
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
    make_run_names_distinct,
    sample_runs,
)
from gpureport.errors import InternalError, SettingsError, SourceError, StoreError, UnknownRunError
from gpureport.findings import Check
from gpureport.importers.time_window import RunReading
from gpureport.nightly import records
from gpureport.nightly.baselines import list_baselines
from gpureport.nightly.history import History, first_night_of_run, keep_latest_records
from gpureport.nightly.latest import (
    check_for_worse_change,
    describe_headline,
    describe_latest_night,
    summarize_latest_night,
)
from gpureport.nightly.records import NightlyRecord, NightlyRun
from gpureport.nightly.site import BACK, check_site, write_site
from gpureport.nightly.trends import build_trends
from gpureport.places import RemotePath
from gpureport.recording import Recording, Run
from gpureport.redaction import redact_text
from gpureport.regular_files import name_by_url
from gpureport.report.formats.html import render
from gpureport.report.model.blocks import Block
from gpureport.report.sections.steps.pairs import compare_with_earlier
from gpureport.store.store import Store

_NEWEST = 7
"""Newest dates of a history whose missing reports are made again: each takes an analysis of its runs, and of those of
the week before."""
_WEEK = timedelta(days=7)
"""Time back to the night that a night is compared with; else the nearest later one is taken."""
_GATES = ("policy", "fail_on", "fail_on_change", "fail_on_standing_change", "junit", "summary")


def nightly(source: tuple[str, ...], options: Options) -> int:
    if options.anonymise:
        hint = "give runs other names with --name"
        raise SettingsError("--anonymise", "a history keeps the names of runs", hint, code="names_are_kept")
    if option := "" if source else given.find_given(options, _GATES):
        what = "no run is checked without a SOURCE"
        raise SettingsError(option, what, "name tonight's log", code="needs_source")
    night, recorded, site = options.night or today().isoformat(), now(), options.site
    if isinstance(site, RemotePath):
        site.check_bucket()
    check_site(site)
    rules = gate.read_rules(options)
    store = words.find_store(options)
    history = History(store.folder)
    earlier = history.read_all()
    parts, missing, fresh = _capture_night(store, earlier, source, options, night)
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
        verdict = gate.judge_runs(rules, fresh, missing, against, options)
        verdict = Verdict(checks=(*verdict.checks, *_check_changes(earlier, draft, accepted, options)))
        # the runs of the record say that a source has no data
        kept = [records.capture_check(check) for check in verdict.checks if check.limit != HAS_DATA]
        record = replace(draft, checks=tuple(kept))
        history.append(record)
    # with those that another process added meanwhile; one recorded as it once was has a new time
    every = history.read_all(each for each in earlier if record is None or each.file != record.id)
    whole = {each.page: each for each in every}
    reports = _NightReports(store, whole, options, fresh, rules.baseline, against)
    nights = keep_latest_records(every)
    courses = build_trends(nights)
    with show_stage(f"Writing the pages in {site}"):
        write_site(site, nights, courses, reports.render_night, accepted)
    found = summarize_latest_night(nights, courses, accepted, record)
    headline, state = describe_headline(found), describe_latest_night(found)
    for line in (headline, *(f"  {each}" for each in state)):
        click.echo(make_printable(line))
    if verdict is not None and verdict.checks:
        click.echo(render_text(verdict.checks), nl=False)
    print_note(f"wrote {site / 'index.html'}")
    if reports.postponed:
        print_note(f"not written: {count(len(reports.postponed), 'report')} of earlier nights; --all-reports does")
    if verdict is None:
        return 0
    heading = [f"gpureport nightly {verdict.line}"] if verdict.checks else []
    gate.write_results(options, rules, verdict.checks, "nightly", [*heading, headline, *state])
    return verdict.exit_code if verdict.checks else 0


def _capture_night(
    store: Store, earlier: Sequence[NightlyRecord], named: tuple[str, ...], options: Options, night: str
) -> tuple[list[NightlyRun], list[Check], AnalysedRuns]:
    """Return what the history keeps of every source, a check for each without data, and the runs with their analyses.

    A source without data is kept with the step that its run would have had.
    """
    lacking, checks, runs = list[NightlyRun](), list[Check](), list[tuple[str, Recording]]()

    def read_stored(name: str, own: Options) -> list[Recording]:
        try:
            return [store.read(words.relabel_stored_run(store, name, own))]
        except UnknownRunError as error:
            # the pages of a night are read by people who typed no command
            what = "there is no recording at this path and no stored run of this name"
            raise StoreError(name, what, "see what gpureport record said", code=error.code) from error

    def read_log(log: RunReading) -> Recording:
        return store.read(words.store_run(store, log, force=False)[0])

    def add_missing(source: str, step: str, reason: str, code: str, run: str = "") -> None:
        lacking.append(records.capture_missing(source, step, reason))
        checks.append(build_missing_check(run or source, reason, code))

    for word, own, found in gate.read_each_run(named, options, read_stored, read_log):
        step, source = own.step[0] if own.step else "", name_by_url(word)
        if not isinstance(found, Recording):
            where, what, code = gate.explain_missing(found)
            add_missing(where, step, what, code)
            if isinstance(found, SourceError):
                print_error(str(found))
        elif (first := first_night_of_run(earlier, found.run.id)) not in {None, night}:
            what = f"this is the log of the night {first}, not a new one"
            add_missing(source, step, what, "earlier_night")
            print_error(f"{source}: {what}")
        else:
            runs.append((source, found))
    read = [recording for _, recording in runs]
    read = read if options.name else make_run_names_distinct(read)
    sources = {id(recording): source for recording, (source, _) in zip(read, runs, strict=True)}
    fresh = analyze_runs(read, options, fewest_runs=0)
    for recording, fault in fresh.faults:
        add_missing(sources[id(recording)], recording.run.step or "", fault.what, fault.code, fault.where)
    measured = zip(fresh.runs, sample_runs(fresh.runs, options.throughput), strict=True)
    parts = [records.capture_run(sources[id(recording)], run) for (recording, _), run in measured]
    return [*parts, *lacking], checks, fresh


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


@dataclass(frozen=True)
class _NightReports:
    """Renders reports: from the fresh runs of tonight, else from the runs of the store.

    `whole` is every record of the history by its page, `baseline` the name of what tonight is set against. `postponed`
    are dates of earlier nights whose reports were not made, though the store holds their runs.
    """

    store: Store
    whole: Mapping[str, NightlyRecord]
    options: Options
    fresh: AnalysedRuns
    baseline: str | None
    against: gate.Baseline
    postponed: list[str] = field(default_factory=list)

    def render_night(self, night: NightlyRecord) -> bytes | None:
        """Return the report of a night with all it recorded.

        None where a run of it is gone or cannot be served; for older nights only if every one is wanted.
        """
        whole = self.whole[night.page]
        newest = sorted({each.date for each in self.whole.values()})[-_NEWEST:]
        if not self.options.all_reports and night.date not in newest:
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
                earlier = (*self._compare_with_baseline(whole, runs), *self._compare_with_last_week(whole, runs))
                return render(content, back=BACK, earlier=earlier).encode()
        except InternalError as error:
            report_internal_error(error)
            return None

    def _analyse(self, wanted: Mapping[str, str]) -> AnalysedRuns | None:
        """Return runs by their ids, with the names of the night; None where one is missing."""
        at_hand = {run.run.id: (run, analysis) for run, analysis in self.fresh.runs}
        if at_hand.keys() >= wanted.keys():
            return replace(self.fresh, runs=tuple(at_hand[run_id] for run_id in wanted))
        found = self._read([*wanted])
        named = [replace(each, run=replace(each.run, name=wanted[each.run.id])) for each in found]
        return analyze_runs(named, self.options, fewest_runs=len(named)) if len(found) == len(wanted) else None

    def _read(self, run_ids: Sequence[str | None]) -> list[Recording]:
        """Return the runs of the store, without those that it no longer holds."""
        entries = [entry for run_id in run_ids if (entry := self.store.get(str(run_id))) is not None]
        return [self.store.read(entry) for entry in entries]

    def _compare_with_baseline(self, night: NightlyRecord, runs: AnalysedRuns) -> Iterator[Block]:
        """Yield the comparison of each step of tonight with the baseline, or why there is none."""
        fresh = {recording.run.id for recording, _ in self.fresh.runs}
        if self.baseline is None or not fresh or fresh != {run.run_id for run in night.measured_runs}:
            return
        title, groups = f"Baseline {redact_text(self.baseline)}", dict[str, list[tuple[Recording, Analysis]]]()
        if self.against.why:
            yield Block(title=title, texts=(f"Not compared: {self.against.why.text.rstrip('?.')}.",))
            return
        for run in runs.runs:
            groups.setdefault(run[0].run.step or run[0].run.name, []).append(run)
        for step, own in groups.items():
            later = sample_runs(own, self.options.throughput)
            yield compare_with_earlier(f"{title} · {step}", self.against.runs, later, runs.goals, is_baseline=True)

    def _compare_with_last_week(self, night: NightlyRecord, runs: AnalysedRuns) -> Iterator[Block]:
        day = date.fromisoformat(night.date)
        nights = [each for each in self.whole.values() if day - _WEEK <= date.fromisoformat(each.date) < day]
        nights.sort(key=lambda each: each.date)
        for group in dict.fromkeys((run.step, run.model) for run in night.measured_runs):
            own = {
                each.page: [run.run_id for run in each.measured_runs if (run.step, run.model) == group]
                for each in (*nights, night)
            }
            job = f" · {group[0]}" if group[0] else ""
            held = ((each.date, before) for each in nights if (before := self._read(own[each.page])))
            first, before = next(held, ("", []))
            if not before:
                yield Block(title=f"Last week{job}", texts=("No run of this job from the week before is stored.",))
                continue
            found = analyze_runs(before, self.options, fewest_runs=0)
            if found.runs:
                later = sample_runs([run for run in runs.runs if run[0].run.id in own[night.page]])
                yield compare_with_earlier(f"Night of {first}{job}", sample_runs(found.runs), later, runs.goals)
