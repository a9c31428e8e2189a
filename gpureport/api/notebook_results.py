"""What `analyze` and `compare` return: results with frames, a short repr, and a view for notebooks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpureport import __version__
from gpureport.analysis.results import Analysis as AnalysisResult
from gpureport.analysis.rulebook import Rule
from gpureport.api import frames
from gpureport.comparison.chain import Comparison as ComparisonResult
from gpureport.comparison.factors import Factor
from gpureport.comparison.training import NO_GOALS, TrainingGoals
from gpureport.findings import Severity
from gpureport.recording import Recording
from gpureport.report import build

if TYPE_CHECKING:
    import pandas as pd

    from gpureport.report.model.report_content import Report


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Analysis(AnalysisResult):
    """All that was found out about one run, with the run itself.

    A notebook shows its headline, where the GPU time went, and its findings.
    """

    recording: Recording = field(compare=False)
    rules: tuple[Rule, ...] = field(compare=False)
    kinds: frozenset[str]

    def findings_frame(self) -> "pd.DataFrame":
        """Return one row a finding, the gravest first; `start` and `end` are empty where the whole run is meant."""
        return frames.findings(self)

    def statistics_frame(self) -> "pd.DataFrame":
        """Return one row for each device and metric, in base units: ratios from 0 to 1, bytes, watts, hertz."""
        return frames.statistics(self)

    def gpu_time_frame(self) -> "pd.DataFrame":
        """Return the seconds of each GPU (rows, indexed by device) in each class of GPU time (columns)."""
        return frames.gpu_time(self)

    def __repr__(self) -> str:
        problems = sum(finding.severity is Severity.PROBLEM for finding in self.findings)
        count = f"{len(self.findings)} finding{'' if len(self.findings) == 1 else 's'}, {problems} of them problems"
        return f"<Analysis {self.run.name!r}: {count}>"

    def _repr_html_(self) -> str:
        from gpureport.api import notebook  # noqa: PLC0415 - loads jinja2

        return notebook.view(report_content([self]))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(ComparisonResult):
    """Steps in order and the differences between them, with the analyses they rest on.

    A notebook shows its headline, where the GPU time of each step went, and the findings.

    Attributes:
        analyses: the analysis of every run, in the order of the steps.
        throughput: training metric that counted the work, where one was named.
        by: settings whose values make the groups; none where the steps are a chain.
    """

    analyses: tuple[Analysis, ...] = field(compare=False)
    throughput: str | None = None
    by: tuple[Factor, ...] = ()

    def deltas_frame(self) -> "pd.DataFrame":
        """Return one row for each figure of two steps: before, after, the interval of the difference, the verdict.

        With a target, the time to it is one of the figures.
        """
        return frames.deltas(self)

    def gains_frame(self) -> "pd.DataFrame":
        """Return one row for each figure of the table of gains: the later step as a multiple of the earlier one."""
        return frames.gains(self)

    def quality_frame(self) -> "pd.DataFrame":
        """Return one row for each training metric of a step: values at equal work on both sides, and the verdict."""
        return frames.quality(self)

    def findings_frame(self) -> "pd.DataFrame":
        """Return one row a finding of any run, with its step and run."""
        return frames.findings_of_runs(self.analyses)

    def gpu_time_frame(self) -> "pd.DataFrame":
        """Return the seconds of each GPU in each class of GPU time, indexed by step, run and device."""
        return frames.gpu_time_of_runs(self.analyses)

    def __repr__(self) -> str:
        first, last = self.steps[0].label, self.steps[-1].label
        judged = self.judged(first, last)
        verdict = f", {judged.metric} {judged.verdict}" if judged else ""
        return f"<Comparison {first!r} to {last!r}: {len(self.steps)} steps, {len(self.analyses)} runs{verdict}>"

    def _repr_html_(self) -> str:
        from gpureport.api import notebook  # noqa: PLC0415 - loads jinja2

        return notebook.view(comparison_content(self))


def comparison_content(comparison: Comparison, title: str | None = None) -> "Report":
    """Return the content of the report of a comparison."""
    return report_content(
        comparison.analyses,
        title,
        throughput=comparison.throughput,
        by=comparison.by,
        goals=comparison.goals,
    )


def report_content(
    analyses: Sequence[Analysis],
    title: str | None = None,
    *,
    throughput: str | None = None,
    by: Sequence[Factor] = (),
    goals: TrainingGoals = NO_GOALS,
) -> "Report":
    """Return the content of the report of some runs."""
    return build(
        [(each.recording, each) for each in analyses],
        title=title,
        command="gpureport.report",
        gpu_hour_price=None,
        version=__version__,
        rules=analyses[0].rules,
        kinds=analyses[0].kinds,
        throughput=throughput,
        goals=goals,
        by=by,
    )
