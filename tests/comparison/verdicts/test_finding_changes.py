"""What becomes of findings from one step to the next."""

from dataclasses import replace

from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.verdicts.finding_changes import (
    ChangeKind,
    FindingChange,
    UnknownCause,
    compare_findings,
    summarize_by_kind,
)
from gpureport.report import build
from gpureport.report.wording.differences.comparison_reasons import describe_unknown_change
from gpureport.testing import Analysis, Finding, NotJudged
from tests.report import examples

GAP = examples.idle_gap("gpu:0", 100, 120)
HOT = examples.throttling("gpu:0", 0, 10)


def analysis(
    name: str, *findings: Finding, step: str | None = None, seconds: int = 600, missing: tuple[NotJudged, ...] = ()
) -> Analysis:
    """Return the analysis of a run with some findings."""
    return examples.analysis(examples.run(name, step=step, seconds=seconds), findings=findings, not_judged=missing)


def compare_analyses(*analyses: Analysis) -> tuple[FindingChange, ...]:
    """Return what became of the findings of the first of two steps."""
    return compare_findings(*compare(examples.sampled(*analyses)).steps)


def test_new_persisting_and_resolved() -> None:
    """A finding is told by its fingerprint; several of one are counted."""
    later = examples.idle_gap("gpu:1", 100, 120)
    found = compare_analyses(analysis("a", GAP, examples.idle_gap("gpu:0", 200, 230), HOT), analysis("b", GAP, later))
    assert [(entry.change, entry.kind, entry.devices) for entry in found] == [
        (ChangeKind.NEW, "idle_gap", ("gpu:1",)),
        (ChangeKind.PERSISTING, "idle_gap", ("gpu:0",)),
        (ChangeKind.RESOLVED, "thermal_throttle", ("gpu:0",)),
    ]
    persisting = found[1]
    assert persisting.before is not None
    assert persisting.after is not None
    assert (persisting.before.findings, persisting.before.lost_gpu_seconds) == (2, 50.0)
    assert (persisting.after.findings, persisting.after.lost_gpu_seconds) == (1, 20.0)
    assert (found[0].before, found[2].after) == (None, None)


def test_a_finding_on_more_devices_is_the_same_finding() -> None:
    """Kind, cause and a shared device make it persist; another cause does not."""
    both = replace(GAP, devices=("gpu:0", "gpu:1"))
    assert [entry.change for entry in compare_analyses(analysis("a", GAP), analysis("b", both))] == [
        ChangeKind.PERSISTING
    ]
    other = replace(GAP, cause="another")
    assert [entry.change for entry in compare_analyses(analysis("a", GAP), analysis("b", other))] == [
        ChangeKind.NEW,
        ChangeKind.RESOLVED,
    ]


def test_what_was_not_judged_is_neither_resolved_nor_new() -> None:
    """A kind the other step could not judge has no known change."""
    missing = (replace(examples.NOT_JUDGED[0], kind="idle_gap", device=None),)
    resolved = compare_analyses(analysis("a", GAP), analysis("b", missing=missing))
    new = compare_analyses(analysis("a", missing=missing), analysis("b", GAP))
    assert [(entry.change, describe_unknown_change(entry)) for entry in (*resolved, *new)] == [
        (ChangeKind.CANNOT_TELL, "b: the kind could not be judged there"),
        (ChangeKind.CANNOT_TELL, "a: the kind could not be judged there"),
    ]


def test_another_device_not_judged_does_not_matter() -> None:
    """What could not be judged of GPU 1 says nothing about GPU 0."""
    missing = (replace(examples.NOT_JUDGED[0], kind="idle_gap", device="gpu:1"),)
    assert [entry.change for entry in compare_analyses(analysis("a", GAP), analysis("b", missing=missing))] == [
        ChangeKind.RESOLVED
    ]


def test_a_short_step_cannot_tell() -> None:
    """Less than a minute shows too little for a finding to be gone."""
    (entry,) = compare_analyses(analysis("a", GAP), analysis("b", seconds=50))
    assert (entry.change, entry.after) == (ChangeKind.CANNOT_TELL, None)
    assert entry.unknown is UnknownCause.TOO_SHORT


def test_replicates_are_counted_and_their_loss_averaged() -> None:
    """Of two runs one has the finding: half its loss is that of a run."""
    (entry,) = compare_analyses(analysis("a", GAP, step="s"), analysis("b", step="s"), analysis("c", GAP))
    assert entry.before is not None
    assert (entry.change, entry.before.runs, entry.before.lost_gpu_seconds) == (ChangeKind.PERSISTING, 1, 10.0)


def test_repetitions_that_could_be_judged_tell_and_are_counted() -> None:
    """Two of three runs could be judged, one lacks the kind: gone there is gone, and words say in how many."""
    missing = (replace(examples.NOT_JUDGED[0], kind="idle_gap", device=None),)
    runs = [analysis("a", GAP), *(analysis(name, step="s") for name in "bc"), analysis("d", step="s", missing=missing)]
    (entry,) = compare_analyses(*runs)
    assert (entry.change, entry.unknown, entry.judged) == (ChangeKind.RESOLVED, None, (2, 3))
    content = build(
        [(examples.recording(each.run), each) for each in runs], title=None, command="", gpu_hour_price=None, version=""
    )
    assert content.comparison is not None
    (line,) = (fact.text for link in content.comparison.links for fact in link.findings)
    assert line.endswith("; only 2 of 3 runs of s could be judged")
    assert content.findings[0].status == "not found in the 2 of 3 runs of the last step that could be judged"


def test_a_repetition_too_short_to_tell_is_not_counted() -> None:
    """A run of 50 s beside two of ten minutes."""
    runs = [analysis("b", step="s"), analysis("c", step="s", seconds=50), analysis("d", step="s")]
    (entry,) = compare_analyses(analysis("a", GAP), *runs)
    assert (entry.change, entry.judged) == (ChangeKind.RESOLVED, (2, 3))


def test_what_moved_to_other_devices_is_still_there() -> None:
    """By kind and cause, over all devices; what is unknown on one device is unknown."""
    other = examples.idle_gap("gpu:1", 100, 120)
    moved = compare_analyses(analysis("a", GAP, HOT), analysis("b", other))
    assert {entry.change for entry in moved if entry.kind == "idle_gap"} == {ChangeKind.NEW, ChangeKind.RESOLVED}
    assert summarize_by_kind(moved) == {
        ("idle_gap", GAP.cause): ChangeKind.PERSISTING,
        ("thermal_throttle", HOT.cause): ChangeKind.RESOLVED,
    }
    unknown = [replace(entry, change=ChangeKind.CANNOT_TELL) for entry in moved if entry.change is ChangeKind.NEW]
    gone = [entry for entry in moved if entry.change is ChangeKind.RESOLVED]
    assert summarize_by_kind([*gone, *unknown])["idle_gap", GAP.cause] is ChangeKind.CANNOT_TELL
