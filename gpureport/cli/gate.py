"""The gate for `check` and `nightly`: checks runs against rules and a baseline."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain, islice

from gpureport.checks import changes, verdict
from gpureport.checks import policy as policies
from gpureport.checks.evaluation import NO_BASELINE_NAMED, CheckInput, evaluate_policy, step_name
from gpureport.checks.figures import read_training
from gpureport.checks.limit import NO_REASON, Why
from gpureport.checks.policy import Policy
from gpureport.cli import recordings, sources, words
from gpureport.cli.messages import now, print_error, print_note, report_internal_error
from gpureport.cli.options import Options
from gpureport.cli.output import write_file
from gpureport.cli.recordings import AnalysedRuns, Unread, analyze_runs, sample_runs
from gpureport.comparison.run import SampledRun
from gpureport.errors import InternalError, SettingsError, SourceError, StoreError, find_refusal
from gpureport.findings import Check, CheckOutcome
from gpureport.importers.time_window import RunReading
from gpureport.names import group_pairs
from gpureport.nightly import baselines
from gpureport.recording import Recording
from gpureport.settings import read_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    recordings: Sequence[Recording] = ()
    steps: Mapping[str, changes.BaselineComparison] = field(default_factory=dict)
    runs: Sequence[SampledRun] = ()
    why: Why = NO_REASON


def read_each_run(
    named: Sequence[str],
    options: Options,
    read_stored: Callable[[str, Options], list[Recording]],
    read_log: Callable[[RunReading], Recording],
) -> Iterator[tuple[str, Options, Recording | Unread]]:
    fetched = sources.fetch_sources(named, tolerant=True)
    for group, own, read in recordings.read_groups(fetched, options, read_stored, read_log):
        # yield each run before reading the next, so that a folder need not fit in memory
        begun = list(islice(read, 2))
        for run in chain(begun, read):
            if isinstance(run, StoreError) or (isinstance(run, SourceError) and len(begun) == 1):
                yield group[0], own, SourceError(", ".join(group), run.what, run.hint, code=run.code)
            else:
                yield group[0], own, run


def explain_missing(error: Unread | StoreError) -> tuple[str, str, str]:
    if isinstance(error, InternalError):
        report_internal_error(error)
        return error.where, error.what, error.code
    return error.where, f"{error.what}; {error.hint}", error.code


def read_policy_without_baseline(options: Options) -> Policy:
    if Policy().with_limits(options.fail_on).needs_baseline:
        raise SettingsError("--fail-on", "a change needs a baseline", "use check --baseline NAME", code="no_baseline")
    return policies.read_policy(read_settings(options.config)).with_limits(options.fail_on)


def read_rules(options: Options) -> tuple[Policy, str | None]:
    stated = options.policy or options.config
    policy = policies.read_policy(read_settings(stated)).with_limits(options.fail_on)
    for hint in policies.list_doubtful_rules(policy):
        print_note(hint)
    named = (policies.read_baseline_name(read_settings(file)) for file in (stated, options.config))
    return policy, options.baseline or next(filter(None, named), None)


def compare_with_baseline(baseline: Baseline, analysed: AnalysedRuns, options: Options) -> Baseline:
    if baseline.why or not baseline.recordings or not analysed.runs:
        return replace(baseline, recordings=())
    try:
        before = sample_runs(analyze_runs(baseline.recordings, options).runs, options.throughput)
        after = sample_runs(analysed.runs, options.throughput)
        groups = group_pairs((step_name(run.analysis), run) for run in after)
        if (alone := sum(run.analysis.run.step is None for run in after)) > 1:
            print_note(f"gpureport: {alone} runs were compared one by one; --step LABEL compares them as repetitions")
        steps = {label: changes.compare_with_baseline(before, runs, analysed.goals) for label, runs in groups.items()}
    except (InternalError, SourceError, StoreError) as error:
        return _explain_failure(error, options)
    return replace(baseline, steps=steps, runs=before)


def read_baseline(name: str | None, options: Options) -> Baseline:
    if name is None:
        return Baseline()
    # labels apply to the checked runs, not to the baseline
    own = replace(options, anonymise=False, name=None, step=(), work=())
    try:
        if words.is_source(name, own):
            return Baseline(recordings=recordings.read_recordings([name], replace(own, host=(), training=())))
        try:
            found = baselines.read_baseline(words.find_store(own), name.removeprefix(words.BASELINE))
        except (StoreError, SettingsError) as error:
            if words.find_stored(name, own) is None:
                raise StoreError(error.where, error.what, error.hint, code=error.code) from error
            found = recordings.read_recordings([name], own)
    except (InternalError, SourceError, StoreError) as error:
        return _explain_failure(error, options)
    return Baseline(recordings=found)


def _explain_failure(error: Unread | StoreError, options: Options) -> Baseline:
    """Return why there is no baseline. Disk errors abort `nightly`, since its record is permanent."""
    refusal = find_refusal(error) if sources.find_given(options, ["site"]) else None
    if refusal is not None and not isinstance(error, InternalError):
        what = f"cannot be read ({refusal.strerror})"
        raise StoreError(error.where, what, "check its permissions", code="cannot_read") from error
    where, what, code = explain_missing(error)
    return Baseline(why=Why(code, f"{where}: {what}"))


def check_limits(
    policy: Policy, analysed: AnalysedRuns, options: Options, against: Baseline | None = None, named: str | None = None
) -> tuple[Check, ...]:
    why = against.why if against else Why(NO_BASELINE_NAMED.code, "only gpureport check and nightly accept a baseline")
    asked = CheckInput(
        runs=tuple(read_training(recording, analysis, options.throughput) for recording, analysis in analysed.runs),
        goals=analysed.goals,
        selected_kinds=analysed.kinds,
        today=date.fromisoformat(options.night) if options.night else now().date(),
        comparisons=against.steps if against else {},
        why_no_baseline=why or NO_BASELINE_NAMED,
    )
    is_unused = named and policy.entries and not policy.needs_baseline
    return *evaluate_policy(policy, asked), *([verdict.build_unused_baseline_check(named, why)] if is_unused else [])


def report_failed_limits(found: Collection[Check]) -> int:
    typed = [check for check in found if check.origin == policies.OPTION]
    for outcome in (CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE):
        for clause in verdict.describe_checks(typed, outcome):
            print_error(f"{verdict.OUTCOMES[outcome]}: {clause}")
    return int(any(check.outcome is CheckOutcome.BROKEN for check in typed))


def write_results(
    options: Options, policy: Policy, checks: Sequence[Check], command: str, lines: Sequence[str]
) -> None:
    if options.junit is not None:
        write_file(options.junit, verdict.render_junit(checks, command, policy.entries))
    if options.summary is not None:
        write_file(options.summary, verdict.render_markdown(checks, lines[0], lines[1:]))
