"""Every limit of a policy held against every run it applies to."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from math import isfinite
from pathlib import PurePath

from gpureport.analysis.results import Analysis
from gpureport.checks import acknowledged, against_baseline, counting, recorded
from gpureport.checks.against_baseline import Against
from gpureport.checks.counting import Sought
from gpureport.checks.limit import Limit
from gpureport.checks.observation import Observation, absent
from gpureport.checks.policy import Entry, Policy, Unless, Where
from gpureport.checks.subjects import Subject
from gpureport.findings import Check, CheckOutcome, Confidence, Finding
from gpureport.report.wording import display

NO_BASELINE = "no baseline was named (--baseline)"

_READ: dict[Subject, Callable[[Limit, Analysis], Observation]] = {
    Subject.STATISTIC: recorded.statistic,
    Subject.DEVICE: recorded.device_figure,
    Subject.FIGURE: recorded.figure,
    Subject.RUN: recorded.of_run,
    Subject.GPU_TIME: recorded.gpu_time,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is checked.

    Attributes:
        analyses: one a run.
        asked: kinds that were looked for.
        today: the day by which acknowledgements hold.
        against: what each step label is set against the baseline; runs without a label stand under their id.
        no_baseline: why there is nothing to set them against.
    """

    analyses: tuple[Analysis, ...]
    asked: Collection[str]
    today: date
    against: Mapping[str, Against] = field(default_factory=dict)
    no_baseline: str = NO_BASELINE


def step_of(analysis: Analysis) -> str:
    """Return under which name a run is set against the baseline: its step label, else its id."""
    return analysis.run.step or analysis.run.id


def checks(policy: Policy, given: Checked) -> tuple[Check, ...]:
    """Return one check a limit and run, in the order of the limits; of a change one a limit and step."""
    return tuple(check for entry in policy.entries for check in _entry(entry, policy, given))


def _entry(entry: Entry, policy: Policy, given: Checked) -> Iterator[Check]:
    chosen = [analysis for analysis in given.analyses if _applies(entry.where, analysis)]
    if entry.limit.subject is Subject.CHANGE:
        # the runs of one step are repetitions, judged as one
        chosen = list({step_of(analysis): analysis for analysis in chosen}.values())
    if not chosen and given.analyses:
        reason = f"no run is {entry.where.words}"
        yield _check(entry, "", CheckOutcome.CANNOT_JUDGE, Observation(), reason)
    for analysis in chosen:
        yield _judged(entry, analysis, policy, given)


def _applies(where: Where, analysis: Analysis) -> bool:
    run = analysis.run
    if where.step is not None and not (run.step and fnmatchcase(run.step, where.step)):
        return False
    if where.source is None:
        return True
    files = [source.locator for source in run.sources]
    names = [run.name, run.id, *files, *(PurePath(file).name for file in files)]
    return any(fnmatchcase(name, where.source) for name in names)


def _judged(entry: Entry, analysis: Analysis, policy: Policy, given: Checked) -> Check:
    narrow = _narrowed(analysis, entry.where)
    run = analysis.run.step or analysis.run.name if entry.limit.subject is Subject.CHANGE else analysis.run.name
    if narrow is None:
        return _without_gpus(entry, run, analysis, given)
    excused, doubt = _excused(entry.unless, narrow, entry.confidence, given)
    if excused:
        return _check(entry, run, CheckOutcome.NOT_APPLIED, Observation(), excused)
    lacking = _lacking(entry.where, analysis)
    known = acknowledged.known(entry, narrow, policy, given.today)
    every = _observed(entry, narrow, given, ())
    outcome, reason = _outcome(entry.limit, every)
    if outcome is CheckOutcome.BROKEN and known.holding:
        without = _observed(entry, narrow, given, tuple(known.holding))
        others, other_reason = _outcome(entry.limit, without)
        if others is CheckOutcome.PASSED or known.whole:
            outcome, reason = CheckOutcome.ACKNOWLEDGED, known.words
        elif others is CheckOutcome.CANNOT_JUDGE:
            outcome, reason = others, f"{other_reason}; {known.words}"
        else:
            every = without
    elif outcome is CheckOutcome.BROKEN and known.whole:
        outcome, reason = CheckOutcome.ACKNOWLEDGED, known.words
    if outcome is CheckOutcome.BROKEN and known.expired:
        reason = "; ".join(filter(None, (reason, known.expired)))
    return _check(entry, run, outcome, every, "; ".join(filter(None, (reason, doubt, lacking))))


def _without_gpus(entry: Entry, run: str, analysis: Analysis, given: Checked) -> Check:
    """Return the check of a run that has none of the GPUs meant: what holds of the run as a whole still excuses it."""
    unless = entry.unless
    whole = unless is not None and (unless.limit is None or unless.limit.subject is Subject.RUN)
    excused, _ = _excused(unless, analysis, entry.confidence, given) if whole else ("", "")
    outcome = CheckOutcome.NOT_APPLIED if excused else CheckOutcome.CANNOT_JUDGE
    return _check(entry, run, outcome, Observation(), excused or _lacking(entry.where, analysis))


def _lacking(where: Where, analysis: Analysis) -> str:
    """Return which of the GPUs meant the run does not have; empty where it has all."""
    there = {gpu.index for gpu in analysis.run.gpus}
    absent_gpus = [str(index) for index in where.gpus or () if index not in there]
    return f"the run has no GPU {display.join_words(absent_gpus)}" if absent_gpus else ""


def _narrowed(analysis: Analysis, where: Where) -> Analysis | None:
    """Return the analysis of the GPUs meant that are there, with all hosts; None where the run has none of them."""
    if where.gpus is None:
        return analysis
    run = analysis.run
    kept = {gpu.id for gpu in run.gpus if gpu.index in where.gpus}
    if not kept:
        return None
    devices = tuple(device for device in run.devices if device.id in kept or device not in run.gpus)
    held = kept | {device.id for device in devices}
    return replace(
        analysis,
        run=replace(run, devices=devices),
        statistics=tuple(each for each in analysis.statistics if each.device in held),
        gpu_time=tuple(each for each in analysis.gpu_time if each.device in kept),
        findings=tuple(each for each in analysis.findings if not each.devices or kept & {*each.devices}),
        not_judged=tuple(each for each in analysis.not_judged if each.device is None or each.device in held),
    )


def _excused(unless: Unless | None, analysis: Analysis, confidence: Confidence, given: Checked) -> tuple[str, str]:
    """Return why a limit does not apply, and else what is not known about that."""
    if unless is None:
        return "", ""
    if unless.label is not None:
        kind, key, value = unless.label
        labels = dict(analysis.run.params if kind == "param" else analysis.run.tags)
        return (f"{kind} {key} is {value}" if labels.get(key) == value else ""), ""
    if unless.limit is None:
        return "", ""
    seen = _absolute(unless.limit, analysis, Sought(confidence=confidence, asked=given.asked))
    # a kind without an amount stands for its being found, which as a limit it must not be
    bare = unless.limit.subject is Subject.FINDING and not unless.limit.amount.text
    if seen.broken(unless.limit) if bare else seen.kept(unless.limit):
        return f"{unless.words}: {seen.text}", ""
    unknown = seen.missing or seen.doubt
    return "", f"whether {unless.words} could not be told" if unknown else ""


def _absolute(limit: Limit, analysis: Analysis, sought: Sought) -> Observation:
    if limit.subject is Subject.FINDING:
        return counting.findings(limit, analysis, sought)
    return _READ[limit.subject](limit, analysis)


def _observed(entry: Entry, analysis: Analysis, given: Checked, without: Sequence[Finding]) -> Observation:
    limit = entry.limit
    sought = Sought(confidence=entry.confidence, asked=given.asked, without=without)
    if limit.subject not in {Subject.CHANGE, Subject.NEW}:
        return _absolute(limit, analysis, sought)
    found = given.against.get(step_of(analysis))
    if found is None:
        return absent(given.no_baseline)
    if limit.subject is Subject.CHANGE:
        if entry.where.gpus is not None:
            return absent("changes are of all GPUs together: leave gpu out of for")
        return against_baseline.change(limit, found)
    meant = frozenset(finding.fingerprint for finding in counting.matching(limit, analysis, sought))
    seen = counting.findings(limit, analysis, replace(sought, only=against_baseline.fresh(found)))
    return replace(seen, doubt=seen.doubt or against_baseline.untold(found, meant))


def _outcome(limit: Limit, seen: Observation) -> tuple[CheckOutcome, str]:
    if seen.value is None:
        return CheckOutcome.CANNOT_JUDGE, seen.missing
    if seen.broken(limit):
        return CheckOutcome.BROKEN, seen.note
    if limit.subject is Subject.CHANGE and against_baseline.kept(limit, seen):
        beyond = "" if limit.holds(seen.value) else "beyond the limit, but chance alone may change as much"
        return CheckOutcome.PASSED, "; ".join(filter(None, (beyond, seen.note)))
    if limit.subject is not Subject.CHANGE and seen.kept(limit):
        return CheckOutcome.PASSED, seen.note
    reason = seen.doubt or "time without samples decides whether it is kept"
    return CheckOutcome.CANNOT_JUDGE, reason


def _check(entry: Entry, run: str, outcome: CheckOutcome, seen: Observation, reason: str) -> Check:
    limit = entry.limit
    return Check(
        limit=entry.words,
        run=run,
        outcome=outcome,
        observed=seen.text,
        reason=reason,
        origin=entry.origin,
        metric=" ".join(filter(None, (limit.name, limit.statistic))),
        value=seen.value,
        unit=seen.unit,
        bounds=seen.bounds if seen.bounds and all(map(isfinite, seen.bounds)) else None,
    )
