"""The gate of `check` and `nightly`: what it reads, the rules, the comparison with the baseline, one verdict."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from gpureport.checks import changes, verdict
from gpureport.checks import policy as policies
from gpureport.checks.evaluation import NO_BASELINE_NAMED, CheckInput, evaluate_policy, step_name
from gpureport.checks.figures import read_training
from gpureport.checks.limit import NO_REASON, Why
from gpureport.checks.policy import OPTION, Policy, read_baseline_name, read_policy
from gpureport.checks.verdict import Verdict, build_unused_baseline_check
from gpureport.cli.messages import print_error, print_note, report_internal_error, today
from gpureport.cli.options import Options
from gpureport.cli.output import write_file
from gpureport.cli.reading import given, recordings, words
from gpureport.cli.reading.recordings import AnalysedRuns, analyze_runs, sample_runs
from gpureport.comparison.run import SampledRun
from gpureport.errors import InternalError, SettingsError, SourceError, StoreError, find_refusal
from gpureport.findings import Check, CheckOutcome
from gpureport.importers.time_window import RunReading
from gpureport.nightly import baselines
from gpureport.recording import Recording
from gpureport.settings import read_settings

Unread = SourceError | InternalError
"""Why a source gives no run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRules:
    """What runs are held to: the rules, the baseline if one is named, and where rules would be stated."""

    policy: Policy
    baseline: str | None
    stated_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What runs are set against: its recordings, or why there are none, if any are wanted.

    Once compared it holds the comparison of each step by `step_name`, and the runs as they were compared.
    """

    recordings: Sequence[Recording] = ()
    steps: Mapping[str, changes.BaselineComparison] = field(default_factory=dict)
    runs: Sequence[SampledRun] = ()
    why: Why = NO_REASON


def read_each_run(
    sources: Sequence[str],
    options: Options,
    read_stored: Callable[[str, Options], list[Recording]],
    read_log: Callable[[RunReading], Recording],
) -> Iterator[tuple[str, Options, Recording | Unread]]:
    """Yield every run of sources with the source, or why one of them cannot be read. One hides no other.

    `read_stored` returns the runs of a name that is not a file, a folder or a tracker, `read_log` one run of these.
    """
    for group in recordings.list_groups(words.fetch_sources(sources, tolerant=True), options):
        (first, *_), own = group
        read = recordings.read_group(group, read_stored, read_log)
        # a run is handed on before the next but one is read: a folder of many need not fit into memory
        begun = list(islice(read, 2))
        for run in chain(begun, read):
            if isinstance(run, StoreError) or (isinstance(run, SourceError) and len(begun) == 1):
                yield first, own, SourceError(", ".join(group[0]), run.what, run.hint, code=run.code)
            else:
                yield first, own, run


def explain_missing(error: Unread | StoreError) -> tuple[str, str, str]:
    """Return what gives no run, why, and the code of the reason; report a fault of gpureport."""
    if isinstance(error, InternalError):
        report_internal_error(error)
        return error.where, error.what, error.code
    return error.where, f"{error.what}; {error.hint}", error.code


def read_policy_without_baseline(options: Options) -> Policy:
    """Return the policy for a command without a baseline, whose own rules must not need one."""
    if Policy().with_limits(options.fail_on).needs_baseline:
        hint = "use gpureport check --baseline NAME"
        raise SettingsError("--fail-on", "a rule on a change needs a baseline", hint, code="no_baseline")
    return read_policy(read_settings(options.config)).with_limits(options.fail_on)


def read_rules(options: Options) -> GateRules:
    stated = options.policy or options.config
    policy = read_policy(read_settings(stated)).with_limits(options.fail_on)
    for hint in policies.list_demanding_rules(entry.limit for entry in policy.entries):
        print_note(hint)
    named = (read_baseline_name(read_settings(file)) for file in (stated, options.config))
    baseline = options.baseline or next(filter(None, named), None)
    return GateRules(policy=policy, baseline=baseline, stated_at=str(stated or "gpureport.toml"))


def read_baseline(name: str | None, options: Options) -> Baseline:
    """Return the runs of a baseline with their own names, or why there are none.

    It is a file, folder or tracker, else a named baseline, else a stored run.
    """
    if name is None:
        return Baseline()
    # labels of the checked runs are not those of the baseline
    own = replace(options, anonymise=False, name=None, step=(), work=())
    try:
        if words.is_source(name, own):
            return Baseline(recordings=recordings.read_recordings([name], replace(own, host=(), training=())))
        try:
            found = baselines.read_baseline(words.find_store(own), name.removeprefix(words.BASELINE))
        except (StoreError, SettingsError) as error:
            if not words.is_stored(name, own):
                raise StoreError(error.where, error.what, error.hint, code=error.code) from error
            found = recordings.read_recordings([name], own)
    except (InternalError, SourceError, StoreError) as error:
        return _explain_failure(error, options)
    return Baseline(recordings=found)


def compare_with_baseline(baseline: Baseline, analysed: AnalysedRuns, options: Options) -> Baseline:
    if baseline.why or not baseline.recordings or not analysed.runs:
        return replace(baseline, recordings=())
    try:
        before = sample_runs(analyze_runs(baseline.recordings, options).runs, options.throughput)
        groups: dict[str, list[SampledRun]] = {}
        for run in sample_runs(analysed.runs, options.throughput):
            groups.setdefault(step_name(run.analysis), []).append(run)
        steps = {label: changes.compare_with_baseline(before, runs, analysed.goals) for label, runs in groups.items()}
    except (InternalError, SourceError, StoreError) as error:
        return _explain_failure(error, options)
    return replace(baseline, steps=steps, runs=before)


def _explain_failure(error: Unread | StoreError, options: Options) -> Baseline:
    """Return why there is no baseline; of a night, whose answer is kept for good, no failing disk may decide it."""
    refusal = find_refusal(error) if given.find_given(options, ["site"]) else None
    if refusal is not None and not isinstance(error, InternalError):
        what = f"cannot be read ({refusal.strerror})"
        raise StoreError(error.where, what, "check its permissions and the disk", code="cannot_read") from error
    where, what, code = explain_missing(error)
    return Baseline(why=Why(code, f"{where}: {what}"))


def check_limits(
    policy: Policy, analysed: AnalysedRuns, options: Options, against: Baseline | None = None
) -> tuple[Check, ...]:
    """Return the check of every limit of a policy; `against` is None for a command without a baseline."""
    why = against.why if against else Why(NO_BASELINE_NAMED.code, "only gpureport check and nightly take a baseline")
    asked = CheckInput(
        runs=tuple(read_training(recording, analysis, options.throughput) for recording, analysis in analysed.runs),
        goals=analysed.goals,
        selected_kinds=analysed.kinds,
        today=today(),
        comparisons=against.steps if against else {},
        why_no_baseline=why or NO_BASELINE_NAMED,
    )
    return evaluate_policy(policy, asked)


def report_failed_limits(found: Collection[Check]) -> int:
    """Say which rules of the command line are broken or not assessed; return 1 for a broken one."""
    typed = [check for check in found if check.origin == OPTION]
    for outcome in (CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE):
        for clause in verdict.describe_checks(typed, outcome):
            print_error(f"{verdict.OUTCOMES[outcome]}: {clause}")
    return int(any(check.outcome is CheckOutcome.BROKEN for check in typed))


def judge_runs(
    rules: GateRules, analysed: AnalysedRuns, missing: Iterable[Check], against: Baseline, options: Options
) -> Verdict:
    """Return the verdict on runs; `missing` holds a check for each source without a run to assess."""
    is_unused = rules.policy.entries and not rules.policy.needs_baseline
    unused = [build_unused_baseline_check(rules.baseline)] if rules.baseline and is_unused else []
    return Verdict(checks=(*missing, *check_limits(rules.policy, analysed, options, against), *unused))


def write_results(
    options: Options, rules: GateRules, checks: Sequence[Check], command: str, lines: Sequence[str]
) -> None:
    """Write the files of `--junit`, whose suite is the command, and `--summary`, with lines above its table."""
    if options.junit is not None:
        write_file(options.junit, verdict.render_junit(checks, command, rules.policy.entries))
    if options.summary is not None:
        write_file(options.summary, verdict.render_markdown(checks, lines[0], lines[1:]))
