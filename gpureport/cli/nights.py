"""What the sources of a night gave, and the reports of nights with their comparisons, for `gpureport nightly`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property

from gpureport.checks.verdict import build_missing_check
from gpureport.cli.gate import Baseline, explain_missing, read_each_run
from gpureport.cli.messages import internal_errors, print_error, report_internal_error
from gpureport.cli.options import Options
from gpureport.cli.output import build_report
from gpureport.cli.reading.analyses import AnalysedRuns, analyze_runs, describe_run, sample_runs
from gpureport.cli.reading.recordings import make_run_names_distinct
from gpureport.cli.reading.words import relabel_stored_run, store_run
from gpureport.errors import InternalError, SourceError, StoreError, UnknownRunError
from gpureport.findings import Check
from gpureport.nightly import records
from gpureport.nightly.history import first_night_of_run
from gpureport.nightly.records import NightlyRecord, NightlyRun
from gpureport.nightly.site import BACK
from gpureport.recording import Recording
from gpureport.redaction import redact_text
from gpureport.regular_files import name_by_url
from gpureport.report.formats.html import render
from gpureport.report.model.blocks import Block
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

    def _compare(self, night: NightlyRecord, runs: AnalysedRuns) -> Iterator[Block]:
        fresh = {recording.run.id for recording, _ in self.fresh.runs}
        if self.baseline is not None and fresh and fresh == {run.run_id for run in night.measured_runs}:
            yield from self._compare_with_baseline(redact_text(self.baseline), runs)
        yield from self._compare_with_last_week(night, runs)

    def _compare_with_baseline(self, name: str, runs: AnalysedRuns) -> Iterator[Block]:
        """Yield the comparison of each step with the baseline, or why there is none; a run without one is a step."""
        if self.against.reason:
            note = f"Not compared: {self.against.reason.rstrip('?.')}."
            yield Block(title=f"Baseline {name}", texts=(note,))
            return
        groups: dict[str, list[int]] = {}
        for place, (recording, _) in enumerate(runs.runs):
            groups.setdefault(recording.run.step or recording.run.name, []).append(place)
        for step, places in groups.items():
            later = sample_runs([runs.runs[place] for place in places], self.options.throughput)
            title = f"Baseline {name}{f' · {step}' if step else ''}"
            yield compare_with_earlier(title, self.against.runs, later, runs.goals, is_baseline=True)

    def _compare_with_last_week(self, night: NightlyRecord, runs: AnalysedRuns) -> Iterator[Block]:
        day, week = date.fromisoformat(night.date), timedelta(days=_WEEK)
        nights = [each for each in self.whole.values() if day - week <= date.fromisoformat(each.date) < day]
        by_id = {recording.run.id: (recording, analysis) for recording, analysis in runs.runs}
        for step, model in dict.fromkeys((run.step, run.model) for run in night.measured_runs):
            job = f" · {step}" if step else ""
            first, before = self._find_week_ago(nights, (step, model))
            if not before:
                texts = ("No run of this job in the week before is stored.",)
                yield Block(title=f"Last week{job}", texts=texts)
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
