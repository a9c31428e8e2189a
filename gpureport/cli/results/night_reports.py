"""Reports of nights, for the pages of `gpureport nightly`."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from gpureport.cli.messages.internal_errors import InternalError, internal_errors, report_internal_error
from gpureport.cli.options.analysis_options import AnalysisOptions
from gpureport.cli.results import night_comparisons, report_output
from gpureport.cli.results.gate import AgainstBaseline
from gpureport.cli.runs import analyses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpureport.nightly.history.nightly_record import NightlyRecord
    from gpureport.report.model.comparison_parts import EarlierComparison
    from gpureport.store.store import Store


_NEWEST = 7
"""Newest dates of a history whose missing reports are made again: each takes an analysis of its runs, and of those of
the week before."""


@dataclass(frozen=True, kw_only=True)
class NightReports:
    """Renders reports: from what is at hand, else from the runs of the store.

    Attributes:
        postponed: dates of earlier nights whose reports were not made, though the store holds their runs.
    """

    store: "Store"
    whole: "Mapping[str, NightlyRecord]"
    options: AnalysisOptions
    fresh: analyses.AnalysedRuns
    baseline: str | None
    against: AgainstBaseline
    throughput: str | None
    every: bool = False
    postponed: "list[str]" = field(default_factory=list)

    def render_night(self, night: "NightlyRecord") -> bytes | None:
        """Return the report of a night with all it recorded.

        None where a run of it is gone or cannot be served; for older nights only if every one is wanted.
        """
        from gpureport.nightly.site.site_writing import BACK  # noqa: PLC0415 - loads jinja2
        from gpureport.report.formats.html import render  # noqa: PLC0415 - as above

        whole = self.whole[night.page]
        if not self.every and night.date not in self._newest:
            if all(self.store.get(str(run.run_id)) for run in whole.measured_runs):
                self.postponed.append(night.date)
            return None
        try:
            with internal_errors(f"the report of {night.date}"):
                runs = self._analysed({run.run_id: run.name for run in whole.measured_runs if run.run_id})
                if runs is None:
                    return None
                content = report_output.build_report(runs, command=night.command, checks=whole.checks)
                return render(content, back=BACK, earlier=tuple(self._compare(whole, runs))).encode()
        except InternalError as error:
            report_internal_error(error)
            return None

    @cached_property
    def _newest(self) -> list[str]:
        """The newest dates of the history."""
        return sorted({night.date for night in self.whole.values()})[-_NEWEST:]

    def _compare(self, night: "NightlyRecord", runs: analyses.AnalysedRuns) -> "Iterator[EarlierComparison]":
        """Yield tonight against the baseline, and any night against last week."""
        fresh = {recording.run.id for recording, _ in self.fresh.runs}
        if fresh and fresh == {run.run_id for run in night.measured_runs}:
            yield from night_comparisons.compare_with_baseline(self.baseline, self.against, runs, self.throughput)
        yield from night_comparisons.compare_with_last_week(night, self.whole.values(), runs, self.store, self.options)

    def _analysed(self, wanted: "Mapping[str, str]") -> analyses.AnalysedRuns | None:
        """Return runs by their ids, with the names of the night; None where one is missing."""
        at_hand = {run.run.id: (run, analysis) for run, analysis in self.fresh.runs}
        if at_hand.keys() >= wanted.keys():
            return replace(self.fresh, runs=tuple(at_hand[run_id] for run_id in wanted))
        entries = [entry for run_id in wanted if (entry := self.store.get(run_id)) is not None]
        if len(entries) < len(wanted):
            return None
        found = [self.store.read(entry) for entry in entries]
        named = [replace(each, run=replace(each.run, name=wanted[each.run.id])) for each in found]
        return analyses.analyze_runs(named, self.options, fewest_runs=len(named))
