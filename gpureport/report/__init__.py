"""Reports: one content, `build`, and one renderer a format; `write` owns the files.

Importing this package loads no renderer, and none of the libraries that content and renderers need.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from gpureport.report.formats.output import FORMATS, render, write

if TYPE_CHECKING:
    from gpureport.analysis.results import Analysis
    from gpureport.analysis.rulebook import Rule
    from gpureport.comparison.factors import Factor
    from gpureport.comparison.training import TrainingGoals
    from gpureport.findings import Check
    from gpureport.recording import Recording
    from gpureport.report.model.report_content import Report

__all__ = ["FORMATS", "build", "render", "write"]


def build(  # noqa: PLR0913 - what a report depends on, each by name
    runs: Sequence[tuple["Recording", "Analysis"]],
    *,
    title: str | None,
    command: str,
    gpu_hour_price: float | None,
    version: str,
    rules: Sequence["Rule"] | None = None,
    kinds: Collection[str] | None = None,
    by: Sequence["Factor"] = (),
    throughput: str | None = None,
    checks: Sequence["Check"] = (),
    goals: "TrainingGoals | None" = None,
) -> "Report":
    """Return the content of a report on one run, or on several in the order of their steps.

    Args:
        runs: recordings with their analyses, at least one.
        title: headline of the report; the names of the runs when None.
        command: the command that made it, without names of output files.
        gpu_hour_price: price of one GPU-hour, in any currency.
        version: version of gpureport.
        rules: the rules the analyses were made with, for their limits; those that ship when None.
        kinds: kinds that were asked for; all that the rules know when None.
        by: settings whose values make the groups; none where the steps are a chain.
        throughput: training metric that counts work, whatever its name.
        checks: limits a person set, and what became of them.
        goals: what a person says of training metrics; nothing when None.
    """
    from gpureport.redaction import redact_text  # noqa: PLC0415 - beside what it is used with
    from gpureport.report.sections import builder  # noqa: PLC0415 - loads NumPy and pyarrow, which a caller may not need

    return builder.build(
        runs,
        title=title and redact_text(title),
        command=redact_text(command),
        gpu_hour_price=gpu_hour_price,
        version=version,
        rules=rules,
        kinds=kinds,
        by=by,
        throughput=throughput,
        checks=checks,
        goals=goals,
    )
