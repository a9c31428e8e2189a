"""The gate of `check` and `nightly`: the rules, the comparison with the baseline, one verdict."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.cli.messages.internal_errors import InternalError, report_internal_error
from gpureport.cli.messages.verbosity import print_note
from gpureport.cli.options.analysis_options import AnalysisOptions
from gpureport.cli.options.gate_options import GateOptions
from gpureport.cli.options.source_options import SourceOptions
from gpureport.cli.results import limit_checks
from gpureport.cli.runs import baseline_runs, run_sampling
from gpureport.cli.runs.analyses import AnalysedRuns, analyze_runs
from gpureport.errors import SourceError, StoreError, find_refusal

if TYPE_CHECKING:
    from gpureport.checks.baseline_changes import BaselineComparison
    from gpureport.checks.gate_verdict import Verdict
    from gpureport.checks.policy import Policy
    from gpureport.comparison.run import SampledRun
    from gpureport.findings import Check
    from gpureport.places import Place
    from gpureport.recording import Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRules:
    """What runs are held to.

    Attributes:
        policy: the rules of the settings and the command line.
        baseline: name or source of the baseline; None where none is named.
        stated_at: where the rules would be stated, for messages.
    """

    policy: "Policy"
    baseline: str | None
    stated_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What runs are set against.

    Attributes:
        recordings: its runs.
        reason: why there are none; empty where there are some, or no baseline is asked for.
        code: the reason in one word.
    """

    recordings: "Sequence[Recording]" = ()
    reason: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstBaseline:
    """Runs set against a baseline.

    Attributes:
        steps: the comparison of each step, by `step_name`.
        runs: those of the baseline.
        reason: why there is none; empty where no baseline is named, or all steps are compared.
        code: the reason in one word.
    """

    steps: "Mapping[str, BaselineComparison]" = field(default_factory=dict)
    runs: "Sequence[SampledRun]" = ()
    reason: str = ""
    code: str = ""


def read_rules(options: GateOptions, config: Path | None) -> GateRules:
    """Return the rules and the baseline that the command line and the settings name.

    Raises:
        SettingsError: with the line of the first mistake.
    """
    from gpureport.checks import check_wording  # noqa: PLC0415 - loads numpy
    from gpureport.checks.policy import read_baseline_name  # noqa: PLC0415 - as above
    from gpureport.settings import read_settings  # noqa: PLC0415 - only here

    stated = options.policy or config
    policy = limit_checks.read_policy(stated, options.fail_on)
    for hint in check_wording.list_demanding_rules(entry.limit for entry in policy.entries):
        print_note(hint)
    return GateRules(
        policy=policy,
        baseline=options.baseline
        or read_baseline_name(read_settings(stated))
        or read_baseline_name(read_settings(config)),
        stated_at=str(stated or "gpureport.toml"),
    )


def read_baseline(name: str | None, options: SourceOptions, *, is_recorded: bool = False) -> Baseline:
    """Return the runs of a baseline with their own names, or why there are none.

    Args:
        name: the baseline; None where none is asked for.
        options: name the store.
        is_recorded: whether the answer is kept for good, so that no failing disk may decide it.

    Raises:
        StoreError: when the system does not let the baseline be read, and the answer is kept.
    """
    if name is None:
        return Baseline()
    try:
        return Baseline(recordings=baseline_runs.read_baseline_runs(name, replace(options, anonymise=False)))
    except (InternalError, SourceError, StoreError) as error:
        return Baseline(code=error.code, reason=_explain_failure(error, is_recorded=is_recorded))


def compare_with_baseline(
    baseline: Baseline,
    analysed: AnalysedRuns,
    analysis: AnalysisOptions,
    options: SourceOptions,
    *,
    is_recorded: bool = False,
) -> AgainstBaseline:
    """Return each step against a baseline, or why it cannot be compared.

    Args:
        baseline: its runs; where names are hidden, those of both are hidden together.
        analysed: the runs.
        analysis: how runs are analysed.
        options: name the training metric that counts work.
        is_recorded: whether the answer is kept for good, so that no failing disk may decide it.

    Raises:
        StoreError: when the system does not let the store be read, and the answer is kept.
    """
    if baseline.reason or not baseline.recordings or not analysed.runs:
        return AgainstBaseline(reason=baseline.reason, code=baseline.code)
    try:
        return _compare_steps(baseline.recordings, analysed, analysis, options)
    except (InternalError, SourceError, StoreError) as error:
        return AgainstBaseline(code=error.code, reason=_explain_failure(error, is_recorded=is_recorded))


def _explain_failure(error: InternalError | SourceError | StoreError, *, is_recorded: bool) -> str:
    """Return why there is no comparison.

    Raises:
        StoreError: when the system is why, and the answer is kept.
    """
    if isinstance(error, InternalError):
        report_internal_error(error)
        return f"{error.where}: {error.what}"
    refusal = find_refusal(error) if is_recorded else None
    if refusal is not None:
        what = f"cannot be read ({refusal.strerror})"
        raise StoreError(error.where, what, "check its permissions and the disk", code="cannot_read") from error
    return f"{error.where}: {error.what}; {error.hint}"


def _compare_steps(
    found: "Sequence[Recording]",
    analysed: AnalysedRuns,
    analysis: AnalysisOptions,
    options: SourceOptions,
) -> AgainstBaseline:
    """Return each step set against the baseline."""
    from gpureport.checks import baseline_changes  # noqa: PLC0415 - loads numpy
    from gpureport.checks.policy_evaluation import step_name  # noqa: PLC0415 - as above

    key = options.tracker.throughput
    latest_runs = run_sampling.sample_runs(analysed.runs, key)
    before = run_sampling.sample_runs(analyze_runs(found, analysis).runs, key)
    groups: dict[str, list[SampledRun]] = {}
    for run in latest_runs:
        groups.setdefault(step_name(run.analysis), []).append(run)
    steps = {
        label: baseline_changes.compare_with_baseline(before, runs, analysed.goals) for label, runs in groups.items()
    }
    return AgainstBaseline(steps=steps, runs=before)


def judge_runs(
    rules: GateRules,
    analysed: AnalysedRuns,
    missing: "Iterable[Check]",
    against: AgainstBaseline,
    throughput: str | None,
) -> "Verdict":
    """Return the verdict on runs.

    Args:
        rules: what they are held to.
        analysed: the runs.
        missing: a check for each source without a run to assess.
        against: the runs set against the baseline.
        throughput: training metric that counts the work, whatever its name.
    """
    from gpureport.checks.gate_verdict import Verdict, build_unused_baseline_check  # noqa: PLC0415 - loads numpy

    is_unused = rules.policy.entries and not rules.policy.needs_baseline
    unused = [build_unused_baseline_check(rules.baseline)] if rules.baseline and is_unused else []
    checks = limit_checks.check_limits(rules.policy, analysed, against, throughput=throughput)
    return Verdict(checks=(*missing, *checks, *unused))


def write_results(
    options: GateOptions, rules: GateRules, checks: "Sequence[Check]", command: str, lines: Sequence[str]
) -> None:
    """Write the files of `--junit` and `--summary`.

    Args:
        options: name the files.
        rules: what runs are held to.
        checks: the checks that they list.
        command: the command, as JUnit names its suite.
        lines: what the summary says above its table, a paragraph each.
    """
    from gpureport.checks.formats import check_junit, check_summary  # noqa: PLC0415 - loads numpy

    if options.junit is not None:
        write_file(options.junit, check_junit.render(checks, command, rules.policy.entries))
    if options.summary is not None:
        write_file(options.summary, check_summary.render_markdown(checks, lines[0], lines[1:]))


def write_file(path: "Place", content: str) -> None:
    """Write a file; add to what GitHub shows as the summary of a job."""
    from gpureport.report.formats.output import write_whole  # noqa: PLC0415 - loads the report

    if isinstance(path, Path) and str(path) == os.environ.get("GITHUB_STEP_SUMMARY"):
        with path.open("a", encoding="utf-8") as job:
            job.write(content)
    else:
        write_whole(path, content.encode())
    print_note(f"wrote {path}")
