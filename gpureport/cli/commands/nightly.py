"""`gpureport nightly`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

import click

from gpureport import __version__
from gpureport.checks.verdict import HAS_DATA, Verdict, build_missing_check, render_text
from gpureport.cli import gate, messages, output, sources, words
from gpureport.cli.messages import print_error, print_note
from gpureport.cli.options import Options
from gpureport.cli.recordings import AnalysedRuns, analyze_runs, name_runs, sample_runs
from gpureport.errors import InternalError, SettingsError, SourceError, StoreError, UnknownRunError
from gpureport.findings import Check
from gpureport.names import group_pairs
from gpureport.nightly import latest, records, site
from gpureport.nightly.baselines import find_slower, list_baselines
from gpureport.nightly.history import History, first_night_of_run, keep_latest_records
from gpureport.nightly.records import NightlyRecord, NightlyRun
from gpureport.nightly.trends import build_trends
from gpureport.places import RemotePath
from gpureport.recording import Recording
from gpureport.redaction import redact_text
from gpureport.regular_files import name_by_url
from gpureport.report.formats.html import render
from gpureport.report.model.blocks import Block
from gpureport.report.sections.steps.pairs import compare_with_earlier
from gpureport.store.store import Store

_NEWEST = 7
_GATES = ("policy", "fail_on", "fail_on_change", "fail_on_standing_change", "junit", "summary")


def nightly(source: tuple[str, ...], options: Options) -> int:
    sources.refuse_to_hide(options, "a history")
    if option := "" if source else sources.find_given(options, _GATES):
        raise SettingsError(option, "no run is checked", "name tonight's log", code="needs_source")
    now = messages.now()
    if isinstance(options.site, RemotePath):
        options.site.check_bucket()
    site.check_site(options.site)
    (policy, baseline_name), store = gate.read_rules(options), words.find_store(options)
    history = History(store.folder)
    earlier = history.read_all()
    draft = NightlyRecord(
        date=options.night or now.date().isoformat(),
        label=redact_text(options.label),
        command=output.typed_command(),
        version=__version__,
        runs=(),
        recorded=round(now.timestamp() * 1e6),
    )
    parts, missing, fresh = _capture_night(store, earlier, source, options, draft.date)
    accepted = [run for each in list_baselines(store) for run in each.runs]
    verdict = record = None
    baseline = gate.read_baseline(baseline_name if source and fresh.runs else None, options)
    against = gate.compare_with_baseline(baseline, fresh, options)
    if source:
        draft = replace(draft, runs=tuple(parts))
        checks = [*missing, *gate.check_limits(policy, fresh, options, against, baseline_name)]
        if kinds := [False] * options.fail_on_change + [True] * options.fail_on_standing_change:
            nights = keep_latest_records([*earlier, draft])
            found = latest.summarize_latest_night(nights, build_trends(nights), accepted)
            groups = {run.group for run in draft.measured_runs}
            for standing in kinds:
                checks += latest.check_for_worse_change(found, draft.date, groups, standing=standing)
        verdict = Verdict(checks=tuple(checks))
        # the runs in the record already show which sources have no data
        record = replace(draft, checks=tuple(records.capture_check(each) for each in checks if each.limit != HAS_DATA))
        history.append(record)
    # another process may have added records
    every = history.read_all(each for each in earlier if record is None or each.file != record.id)
    reports = _NightReports(store, {each.page: each for each in every}, options, fresh, baseline_name, against)
    nights = keep_latest_records(every)
    courses = build_trends(nights)
    with messages.show_stage(f"Writing the pages in {options.site}"):
        site.write_site(options.site, nights, courses, reports.render_night, accepted)
    found = latest.summarize_latest_night(nights, courses, accepted, record)
    headline, *state = latest.describe_headline(found), *latest.describe_latest_night(found)
    state += find_slower(store.folder, ((each.run.name, each.run.tags) for each, _ in fresh.runs))
    messages.print_lines([headline, *(f"  {each}" for each in state)])
    if verdict is not None and verdict.checks:
        click.echo(render_text(verdict.checks), nl=False)
    print_note(f"wrote {options.site / 'index.html'}")
    if reports.postponed:
        print_note(f"reports not written for earlier nights: {len(reports.postponed)}; add --all-reports")
    if verdict is None:
        return 0
    heading = [f"gpureport nightly {verdict.line}"] if verdict.checks else []
    gate.write_results(options, policy, verdict.checks, "nightly", [*heading, headline, *state])
    return verdict.exit_code if verdict.checks else 0


def _capture_night(
    store: Store, earlier: Sequence[NightlyRecord], named: tuple[str, ...], options: Options, night: str
) -> tuple[list[NightlyRun], list[Check], AnalysedRuns]:
    lacking, checks, runs = list[NightlyRun](), list[Check](), list[tuple[str, Recording]]()

    def read_stored(name: str, own: Options) -> list[Recording]:
        try:
            return [store.read(words.relabel_stored_run(store, name, own))]
        except UnknownRunError as error:
            # the site shows this to people who did not run the command
            what = "there is neither a recording at this path nor a stored run with this name"
            raise StoreError(name, what, "see the output of gpureport record", code=error.code) from error

    def add_missing(source: str, step: str, reason: str, code: str, run: str = "") -> None:
        lacking.append(records.capture_missing(source, step, reason))
        checks.append(build_missing_check(run or source, reason, code))

    stored = gate.read_each_run(
        named, options, read_stored, lambda log: store.read(words.store_run(store, log, force=False)[0])
    )
    for word, own, found in stored:
        step, source = own.step[0] if own.step else "", name_by_url(word)
        if not isinstance(found, Recording):
            where, what, code = gate.explain_missing(found)
            add_missing(where, step, what, code)
            if isinstance(found, SourceError):
                print_error(str(found))
        elif (first := first_night_of_run(earlier, found.run.id)) not in {None, night}:
            what = f"this log was added before, as the night of {first}"
            add_missing(source, step, what, "earlier_night")
            print_error(f"{source}: {what}")
        else:
            runs.append((source, found))
    read = name_runs([recording for _, recording in runs], options)
    source_of = {id(recording): source for recording, (source, _) in zip(read, runs, strict=True)}
    fresh = analyze_runs(read, options, fewest_runs=0)
    for recording, fault in fresh.faults:
        add_missing(source_of[id(recording)], recording.run.step or "", fault.what, fault.code, fault.where)
    measured = zip(fresh.runs, sample_runs(fresh.runs, options.throughput), strict=True)
    parts = [records.capture_run(source_of[id(recording)], run) for (recording, _), run in measured]
    return [*parts, *lacking], checks, fresh


@dataclass(frozen=True)
class _NightReports:
    store: Store
    whole: Mapping[str, NightlyRecord]
    options: Options
    fresh: AnalysedRuns
    baseline: str | None
    against: gate.Baseline
    postponed: list[str] = field(default_factory=list)

    def render_night(self, night: NightlyRecord) -> bytes | None:
        whole = self.whole[night.page]
        newest = sorted({each.date for each in self.whole.values()})[-_NEWEST:]
        if not self.options.all_reports and night.date not in newest:
            if all(self.store.get(str(run.run_id)) for run in whole.measured_runs):
                self.postponed.append(night.date)
            return None
        try:
            with messages.internal_errors(f"the report of {night.date}"):
                runs = self._analyse({run.run_id: run.name for run in whole.measured_runs if run.run_id})
                if runs is None:
                    return None
                # the options of this call apply only to the comparison with the baseline
                content = output.build_report(runs, Options(), command=night.command, checks=whole.checks)
                earlier = (*self._compare_with_baseline(whole, runs), *self._compare_with_last_week(whole, runs))
                return render(content, back=site.BACK, earlier=earlier).encode()
        except InternalError as error:
            messages.report_internal_error(error)
            return None

    def _analyse(self, wanted: Mapping[str, str]) -> AnalysedRuns | None:
        at_hand = {run.run.id: (run, analysis) for run, analysis in self.fresh.runs}
        if at_hand.keys() >= wanted.keys():
            return replace(self.fresh, runs=tuple(at_hand[run_id] for run_id in wanted))
        found = self._read([*wanted])
        named = [replace(each, run=replace(each.run, name=wanted[each.run.id])) for each in found]
        return analyze_runs(named, self.options, fewest_runs=len(named)) if len(found) == len(wanted) else None

    def _read(self, run_ids: Sequence[str | None]) -> list[Recording]:
        return [self.store.read(entry) for run_id in run_ids if (entry := self.store.get(str(run_id))) is not None]

    def _compare_with_baseline(self, night: NightlyRecord, runs: AnalysedRuns) -> Iterator[Block]:
        fresh = {recording.run.id for recording, _ in self.fresh.runs}
        if self.baseline is None or not fresh or fresh != {run.run_id for run in night.measured_runs}:
            return
        title = f"Baseline {redact_text(self.baseline)}"
        if self.against.why:
            yield Block(title=title, texts=(f"Not compared: {self.against.why.text.rstrip('?.')}.",))
            return
        for step, own in group_pairs((run[0].run.step or run[0].run.name, run) for run in runs.runs).items():
            later = sample_runs(own, self.options.throughput)
            yield compare_with_earlier(f"{title} · {step}", self.against.runs, later, runs.goals, is_baseline=True)

    def _compare_with_last_week(self, night: NightlyRecord, runs: AnalysedRuns) -> Iterator[Block]:
        day = date.fromisoformat(night.date)
        nights = [each for each in self.whole.values() if day - timedelta(7) <= date.fromisoformat(each.date) < day]
        nights.sort(key=lambda each: each.date)
        for group in dict.fromkeys(run.group for run in night.measured_runs):
            own = {
                each.page: [run.run_id for run in each.measured_runs if run.group == group] for each in (*nights, night)
            }
            job = f" · {group[0]}" if group[0] else ""
            held = ((each.date, before) for each in nights if (before := self._read(own[each.page])))
            first, before = next(held, ("", []))
            if not before:
                yield Block(title=f"Last week{job}", texts=("No run of this job from the previous week is stored.",))
                continue
            found = analyze_runs(before, self.options, fewest_runs=0)
            if found.runs:
                later = sample_runs([run for run in runs.runs if run[0].run.id in own[night.page]])
                yield compare_with_earlier(f"Night of {first}{job}", sample_runs(found.runs), later, runs.goals)
