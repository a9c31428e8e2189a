"""The gate of `check` and `nightly`: what it reads, the rules, the comparison with the baseline, one verdict."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpureport.cli import clock
from gpureport.cli.messages import internal_errors, print_error, print_note, report_internal_error, show_progress
from gpureport.cli.options import Options
from gpureport.cli.output import write_file
from gpureport.cli.reading import joining, readings, recordings, words
from gpureport.cli.reading.analyses import AnalysedRuns, analyze_runs, sample_runs
from gpureport.errors import InternalError, SettingsError, SourceError, StoreError, find_refusal
from gpureport.findings import Check, CheckOutcome

if TYPE_CHECKING:
    from gpureport.checks.changes import BaselineComparison
    from gpureport.checks.policy import Policy
    from gpureport.checks.verdict import Verdict
    from gpureport.comparison.run import SampledRun
    from gpureport.importers.time_window import RunReading
    from gpureport.recording import Recording

_NO_BASELINE_HERE = "gpureport check and nightly compare with a baseline"
"""Why a command without a baseline judges none."""


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
        steps: the comparison of each step, by `step_name`, once there is one.
        runs: the runs as they were compared.
        reason: why there are none; empty where there are some, or no baseline is asked for.
        code: the reason in one word.
    """

    recordings: "Sequence[Recording]" = ()
    steps: "Mapping[str, BaselineComparison]" = field(default_factory=dict)
    runs: "Sequence[SampledRun]" = ()
    reason: str = ""
    code: str = ""


def read_each_run(
    sources: Sequence[str],
    options: Options,
    read_stored: "Callable[[str, Options], list[Recording]]",
    read_log: "Callable[[RunReading], Recording]",
) -> "Iterator[tuple[str, Options, Recording | SourceError | InternalError]]":
    """Yield every run of sources with the source, or why one of them cannot be read. One hides no other.

    Args:
        sources: what a person named; one that cannot be fetched is missing.
        options: how they are read.
        read_stored: returns the runs of a name that is not a file, a folder or a tracker.
        read_log: reads one run of a file, a folder or a tracker.
    """
    sources = words.fetch_sources(sources, tolerant=True)
    is_one = options.as_one_run and sources
    groups = [([source], own) for source, own in ([] if is_one else joining.pair_sources(sources, options))]
    for group, own in [(sources, options)] if is_one else groups:
        found: list[RunReading] = []
        try:
            if len(group) == 1 and not words.is_source(group[0], own):
                yield from ((group[0], own, run) for run in read_stored(group[0], own))
            else:
                found = readings.find_readings(group, own)
        except (SourceError, StoreError) as error:
            yield group[0], own, SourceError(", ".join(group), error.what, error.hint, code=error.code)
        except InternalError as error:
            yield group[0], own, error
        for reading in found:
            try:
                with internal_errors(reading.locator), show_progress(reading):
                    run = read_log(reading)
            except SourceError as error:
                yield group[0], own, error if len(found) > 1 else error.at(", ".join(group))
            except InternalError as error:
                yield group[0], own, error
            else:
                yield group[0], own, run


def read_policy_without_baseline(options: Options) -> "Policy":
    """Return the policy for a command without a baseline.

    Raises:
        SettingsError: with the line of the first mistake, and when a limit of the command line needs a baseline.
    """
    from gpureport.checks.policy import Policy, read_policy  # noqa: PLC0415 - loads numpy
    from gpureport.settings import read_settings  # noqa: PLC0415 - only here

    if Policy().with_limits(options.fail_on).needs_baseline:
        hint = "use gpureport check --baseline NAME"
        raise SettingsError("--fail-on", "a change needs a baseline", hint, code="no_baseline")
    return read_policy(read_settings(options.config)).with_limits(options.fail_on)


def read_rules(options: Options) -> GateRules:
    """Return the rules and the baseline that the command line and the settings name.

    Raises:
        SettingsError: with the line of the first mistake.
    """
    from gpureport.checks import policy as policies  # noqa: PLC0415 - loads numpy
    from gpureport.checks.policy import read_baseline_name, read_policy  # noqa: PLC0415 - as above
    from gpureport.settings import read_settings  # noqa: PLC0415 - only here

    stated = options.policy or options.config
    policy = read_policy(read_settings(stated)).with_limits(options.fail_on)
    for hint in policies.list_demanding_rules(entry.limit for entry in policy.entries):
        print_note(hint)
    named = (read_baseline_name(read_settings(file)) for file in (stated, options.config))
    baseline = options.baseline or next(filter(None, named), None)
    return GateRules(policy=policy, baseline=baseline, stated_at=str(stated or "gpureport.toml"))


def read_baseline(name: str | None, options: Options, *, is_recorded: bool = False) -> Baseline:
    """Return the runs of a baseline with their own names, or why there are none.

    Args:
        name: the baseline: a file, folder or tracker, else a named one, else a stored run; None where none is wanted.
        options: name the store.
        is_recorded: whether the answer is kept for good, so that no failing disk may decide it.

    Raises:
        StoreError: when the system does not let the baseline be read, and the answer is kept.
    """
    from gpureport.nightly import baselines  # noqa: PLC0415 - loads pyarrow

    if name is None:
        return Baseline()
    # labels of the checked runs are not those of the baseline
    own = replace(options, anonymise=False, name=None, step=(), work=())
    try:
        if words.is_source(name, own):
            found = recordings.read_recordings([name], replace(own, host=(), training=()))
            return Baseline(recordings=found)
        try:
            found = baselines.read_baseline(words.find_store(own), name.removeprefix(words.BASELINE))
        except (StoreError, SettingsError) as error:
            if not words.is_stored(name, own):
                raise StoreError(error.where, error.what, error.hint, code=error.code) from error
            found = recordings.read_recordings([name], own)
    except (InternalError, SourceError, StoreError) as error:
        return Baseline(code=error.code, reason=_explain_failure(error, is_recorded=is_recorded))
    return Baseline(recordings=found)


def compare_with_baseline(
    baseline: Baseline, analysed: AnalysedRuns, options: Options, *, is_recorded: bool = False
) -> Baseline:
    """Return a baseline with the comparison of each step, or why it cannot be compared.

    Args:
        baseline: its runs; where names are hidden, those of both are hidden together.
        analysed: the runs.
        options: how runs are analysed.
        is_recorded: as `read_baseline` takes it.

    Raises:
        StoreError: when the system does not let the store be read, and the answer is kept.
    """
    from gpureport.checks import changes  # noqa: PLC0415 - loads numpy
    from gpureport.checks.evaluation import step_name  # noqa: PLC0415 - as above

    if baseline.reason or not baseline.recordings or not analysed.runs:
        return replace(baseline, recordings=())
    try:
        latest = sample_runs(analysed.runs, options.throughput)
        before = sample_runs(analyze_runs(baseline.recordings, options).runs, options.throughput)
        groups: dict[str, list[SampledRun]] = {}
        for run in latest:
            groups.setdefault(step_name(run.analysis), []).append(run)
        steps = {label: changes.compare_with_baseline(before, runs, analysed.goals) for label, runs in groups.items()}
    except (InternalError, SourceError, StoreError) as error:
        return Baseline(code=error.code, reason=_explain_failure(error, is_recorded=is_recorded))
    return replace(baseline, steps=steps, runs=before)


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


def check_limits(
    policy: "Policy", analysed: AnalysedRuns, options: Options, against: Baseline | None = None
) -> tuple[Check, ...]:
    """Return the check of every limit of a policy.

    Args:
        policy: the limits.
        analysed: the runs.
        options: name the training metric that counts the work.
        against: the steps set against their baseline, or why there is none; None for a command without.
    """
    from gpureport.checks.evaluation import NO_BASELINE_NAMED, CheckInput, evaluate_policy  # noqa: PLC0415 - loads numpy
    from gpureport.checks.figures import read_training  # noqa: PLC0415 - as above
    from gpureport.checks.limit import Why  # noqa: PLC0415 - as above

    why = Why(NO_BASELINE_NAMED.code, _NO_BASELINE_HERE) if against is None else NO_BASELINE_NAMED
    if against and against.reason:
        why = Why(against.code, against.reason)
    given = CheckInput(
        runs=tuple(read_training(recording, analysis, options.throughput) for recording, analysis in analysed.runs),
        goals=analysed.goals,
        selected_kinds=analysed.kinds,
        today=clock.today(),
        comparisons=against.steps if against else {},
        why_no_baseline=why,
    )
    return evaluate_policy(policy, given)


def report_failed_limits(found: Collection[Check]) -> int:
    """Say which rules of the command line are broken or not assessed; return 1 for a broken one."""
    from gpureport.checks import verdict  # noqa: PLC0415 - loads numpy
    from gpureport.checks.policy import OPTION  # noqa: PLC0415 - as above

    typed = [check for check in found if check.origin == OPTION]
    for outcome in (CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE):
        for clause in verdict.describe_checks(typed, outcome):
            print_error(f"{verdict.OUTCOMES[outcome]}: {clause}")
    return int(any(check.outcome is CheckOutcome.BROKEN for check in typed))


def judge_runs(
    rules: GateRules, analysed: AnalysedRuns, missing: Iterable[Check], against: Baseline, options: Options
) -> "Verdict":
    """Return the verdict on runs; `missing` holds a check for each source without a run to assess."""
    from gpureport.checks.verdict import Verdict, build_unused_baseline_check  # noqa: PLC0415 - loads numpy

    is_unused = rules.policy.entries and not rules.policy.needs_baseline
    unused = [build_unused_baseline_check(rules.baseline)] if rules.baseline and is_unused else []
    checks = check_limits(rules.policy, analysed, options, against)
    return Verdict(checks=(*missing, *checks, *unused))


def write_results(
    options: Options, rules: GateRules, checks: "Sequence[Check]", command: str, lines: Sequence[str]
) -> None:
    """Write the files of `--junit` and `--summary`.

    Args:
        options: name the files.
        rules: what runs are held to.
        checks: the checks that they list.
        command: the command, as JUnit names its suite.
        lines: what the summary says above its table, a paragraph each.
    """
    from gpureport.checks import verdict  # noqa: PLC0415 - loads numpy

    if options.junit is not None:
        write_file(options.junit, verdict.render_junit(checks, command, rules.policy.entries))
    if options.summary is not None:
        write_file(options.summary, verdict.render_markdown(checks, lines[0], lines[1:]))
