"""What stands in words below the figures of a step: what changed, quality, findings, and what had been advised."""

from collections.abc import Iterator, Sequence

from gpureport.analysis.advice.choose import STEPS
from gpureport.comparison.changes import ChangeKind, summarize_by_kind
from gpureport.comparison.gains import AdvisedChange, RelativeChange, StepGain
from gpureport.comparison.quality import QualityChange
from gpureport.comparison.setup import list_changes_of_job
from gpureport.report.model.shapes import Fact
from gpureport.report.sections.comparison import quality_rows
from gpureport.report.wording import display, terms
from gpureport.report.wording.differences import relative_changes, setup_wording

_FATES = {
    ChangeKind.RESOLVED: "Gone",
    ChangeKind.NEW: "New",
    ChangeKind.PERSISTING: "Still there",
    ChangeKind.CANNOT_TELL: "Assessed in only one of the two",
}


_NOT_RECORDED = "Not known: params were not recorded."
_NOT_RECOGNISED = "No change is recognised as one that an earlier finding advised."


def list_gain_facts(gain: StepGain) -> Iterator[Fact]:
    """Yield what is said of a step against the one before it."""
    yield Fact(name="Changed", text=_describe_changes(gain))
    if gain.quality:
        yield Fact(name="Quality", text=_describe_quality(gain.quality))
    if gain.findings:
        yield Fact(name="Findings", text=_describe_findings(gain))
    advised = [
        *(_describe_advised(change, gain) for change in gain.advised),
        *(_describe_possibly_advised(change) for change in gain.possibly_advised),
    ]
    if advised:
        yield Fact(name="Advised", text=" ".join(advised))
    elif gain.changes:
        # a param may have any name, so that it is never known that nothing was advised
        yield Fact(name="Advised", text=_NOT_RECOGNISED if gain.params_recorded else _NOT_RECORDED)


def list_overall_facts(gains: Sequence[StepGain]) -> Iterator[Fact]:
    """Yield what is said of all steps together."""
    if gains[-1].quality_since_first:
        yield Fact(name="Quality", text=_describe_quality(gains[-1].quality_since_first))
    advised = [change for gain in gains for change in gain.advised]
    if any(gain.params_recorded for gain in gains[1:]):
        count, whole = sum(bool(gain.advised) for gain in gains), len(gains) - 1
        named = display.join_words(list(dict.fromkeys(_title(change) for change in advised)))
        least = "" if count == whole else "At least "
        known = f"{least}{count} of {whole} steps did what a finding had advised: {named}."
        yield Fact(
            name="Advised", text=known if advised else "No step is known to have done what a finding had advised."
        )


def _describe_changes(gain: StepGain) -> str:
    if gain.changes:
        listed = setup_wording.list_setup_changes(gain.changes)
        return listed if gain.params_recorded else f"{listed}; params not recorded"
    return "nothing that was recorded" if gain.params_recorded else "not recorded (state it with --param)"


def _describe_quality(changes: Sequence[QualityChange]) -> str:
    return "; ".join(map(_describe_metric, changes))


def _describe_metric(change: QualityChange) -> str:
    before, after = quality_rows.format_pair(change)
    values = f"{quality_rows.shown_name(change.name)} {before} → {after}{quality_rows.name_work(change)}"
    known = change.before.runs and change.after.runs
    return f"{values}, {change.verdict.short}" if known else values


def _describe_findings(gain: StepGain) -> str:
    parts, found = [], summarize_by_kind(gain.findings)
    for change, name in _FATES.items():
        titles = dict.fromkeys(
            terms.kind_title(display.clean(kind), cause) for (kind, cause), each in found.items() if each is change
        )
        parts += [f"{name}: {'; '.join(titles)}."] if titles else []
    return " ".join(parts)


def _title(change: AdvisedChange) -> str:
    return display.lower_first(STEPS[change.name].title)


def _describe_advised(change: AdvisedChange, gain: StepGain) -> str:
    """Return the way from the advice to its outcome: `advised → applied → outcome`."""
    finding = terms.kind_title(display.clean(change.kind), change.cause)
    fate = summarize_by_kind(gain.findings).get((change.kind, change.cause))
    what_became = {ChangeKind.RESOLVED: "; the finding is gone", ChangeKind.PERSISTING: "; the finding is still there"}
    others = ", together with other changes" if len(list_changes_of_job(gain.changes)) > 1 else ""
    return (
        f"{STEPS[change.name].title}, advised in {display.clean(change.advised_in)} ({finding}) → applied{others} → "
        f"{_describe_outcome(gain)}{what_became.get(fate, '') if fate else ''}."
    )


def _describe_possibly_advised(change: AdvisedChange) -> str:
    finding = terms.kind_title(display.clean(change.kind), change.cause)
    return (
        f"Perhaps: {display.lower_first(STEPS[change.name].title)}, advised in {display.clean(change.advised_in)} "
        f"({finding}); not every run of the two steps names the setting."
    )


def _describe_outcome(gain: StepGain) -> str:
    """Return what a step was worth: of the whole job, and where that is not established what else is."""
    since = gain.since_before
    job = None if since is None else since.gpu_time
    if since is None or (job is None and since.training is None):
        return "outcome not known, as the work was not stated"
    outcomes = [f"GPU time {relative_changes.format_percent_change(job.ratio)}, {job.verdict.short}"] if job else []
    if since.training and (job is None or _is_surer(since.training, job)):
        times = relative_changes.format_times(since.training.ratio)
        outcomes.append(f"training alone {times} as fast, {since.training.verdict.short}")
    if since.energy and job and _is_surer(since.energy, job):
        change = relative_changes.format_percent_change(since.energy.ratio)
        outcomes.append(f"energy {change}, {since.energy.verdict.short}")
    fell = [quality_rows.shown_name(change.name) for change in gain.quality if change.fell]
    return "; ".join([*outcomes, *([f"but worse: {display.join_words(fell)}"] if fell else [])])


def _is_surer(change: RelativeChange, job: RelativeChange) -> bool:
    return change.verdict.is_established and not job.verdict.is_established
