"""Every kind has an answer for every group of devices: found, judged, or why not."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport.analysis import RULES
from gpureport.analysis.engine import answerability
from gpureport.analysis.engine.selection import keep_kinds
from gpureport.analysis.rules.missing_metrics import too_short
from gpureport.answers import Answer, Outcome
from gpureport.testing import Confidence, Device, Finding, NotJudged, Run, analyze, finding, recording, steps

KINDS = [kind for rule in RULES for kind in rule.kinds]


def _run(*devices: Device) -> Run:
    return replace(recording(util=steps((97, 100))).run, devices=devices)


def _gpu(index: int, *, node: str | None = None, model: str = "NVIDIA L4") -> Device:
    return Device(id=f"{node}/gpu:{index}" if node else f"gpu:{index}", index=index, node=node, model=model)


def _missing(kind: str, device: str | None = None, reason: str = "no series") -> NotJudged:
    return NotJudged(kind=kind, device=device, reason=reason, recording="log it")


def _of(kind: str, run: Run, findings: tuple[Finding, ...] = (), missing: tuple[NotJudged, ...] = ()) -> list[Answer]:
    return [answer for answer in answerability.answer_kinds(run, RULES, findings, missing) if answer.kind == kind]


@pytest.mark.parametrize(
    "devices",
    [
        (),
        (Device(id="host"),),
        (_gpu(0),),
        (_gpu(0), _gpu(1), _gpu(2, model="NVIDIA A100")),
        (_gpu(0, node="a"), _gpu(0, node="b"), Device(id="a/host", node="a")),
    ],
)
def test_every_kind_is_answered_once_a_group(devices: tuple[Device, ...]) -> None:
    """There is no empty section, whatever was recorded, and every GPU is in one group."""
    answers = answerability.answer_kinds(_run(*devices), RULES, (), ())
    groups = list(dict.fromkeys((answer.group, answer.devices) for answer in answers))
    assert groups
    for group in groups:
        assert [answer.kind for answer in answers if (answer.group, answer.devices) == group] == KINDS
    grouped = [device for _, ids in groups for device in ids]
    assert sorted(grouped) == sorted(device.id for device in devices if device.index is not None)


def test_groups_are_named_by_count_model_and_node() -> None:
    """GPUs of a node and a model are one group."""
    run = _run(_gpu(0, node="a"), _gpu(1, node="a"), _gpu(0, node="b"), _gpu(1, node="b", model="NVIDIA A100"))
    assert [answer.group for answer in _of("idle_gap", run)] == [
        "2 x NVIDIA L4 of a",
        "1 x NVIDIA L4 of b",
        "1 x NVIDIA A100 of b",
    ]


def test_found_suspected_judged_and_not() -> None:
    """The four outcomes; low confidence alone is a suspicion."""
    run = _run(_gpu(0))
    sure, unsure = finding("idle_gap", (0, 10)), finding("idle_gap", (0, 10), confidence=Confidence.LOW)
    (found,) = _of("idle_gap", run, (unsure, sure))
    (suspected,) = _of("idle_gap", run, (unsure,))
    (judged,) = _of("idle_gap", run)
    (cannot,) = _of("idle_gap", run, (), (_missing("idle_gap"),))
    assert [each.outcome for each in (found, suspected, judged, cannot)] == [
        Outcome.FOUND,
        Outcome.SUSPECTED,
        Outcome.JUDGED,
        Outcome.CANNOT_JUDGE,
    ]
    assert found.findings == (sure.fingerprint,)
    assert (cannot.reason, cannot.recording) == ("no series", "log it")
    assert (judged.reason, judged.recording) == ("", "")


def test_what_concerns_one_group_leaves_the_others_alone() -> None:
    """A host speaks for the GPUs of its node; a finding without devices for all."""
    run = _run(_gpu(0, node="a"), _gpu(0, node="b"), Device(id="a/host", node="a"), Device(id="b/host", node="b"))
    on_a = finding("idle_gap", (0, 10), devices=("a/gpu:0",))
    assert [answer.outcome for answer in _of("idle_gap", run, (on_a,))] == [Outcome.FOUND, Outcome.JUDGED]
    host = _missing("cpu_bound", "b/host")
    assert [answer.outcome for answer in _of("cpu_bound", run, (), (host,))] == [Outcome.JUDGED, Outcome.CANNOT_JUDGE]
    everywhere = finding("tail_idle", (0, 10), devices=())
    assert {answer.outcome for answer in _of("tail_idle", run, (everywhere,))} == {Outcome.FOUND}


def test_what_could_not_be_judged_in_part_is_said_beside_what_was_found() -> None:
    """A finding on one GPU does not hide that its peer was not looked at."""
    run = _run(_gpu(0), _gpu(1))
    (answer,) = _of("idle_gap", run, (finding("idle_gap", (0, 10)),), (_missing("idle_gap", "gpu:1"),))
    assert (answer.outcome, answer.reason) == (Outcome.FOUND, "gpu:1: no series")
    both = (_missing("idle_gap", "gpu:0"), _missing("idle_gap", "gpu:1"))
    (answer,) = _of("idle_gap", run, (), both)
    assert (answer.outcome, answer.reason) == (Outcome.CANNOT_JUDGE, "no series")


def test_answers_agree_with_findings_and_what_was_not_judged() -> None:
    """In an analysis nothing is said to be judged that is listed as not judged."""
    analysis = analyze(recording(util=[steps((97, 60), (0, 20), (97, 60)), steps((97, 140))], memory=np.full(140, 10)))
    by_kind = {answer.kind: answer for answer in analysis.answers}
    assert list(by_kind) == KINDS
    found = {one.kind for one in analysis.findings}
    missing = {entry.kind for entry in analysis.not_judged}
    for kind, answer in by_kind.items():
        assert (answer.outcome in {Outcome.FOUND, Outcome.SUSPECTED}) is (kind in found)
        assert bool(answer.reason) is (kind in missing)
        assert bool(answer.recording) is (kind in missing)


def test_answers_follow_the_selection() -> None:
    """Only what was asked for is answered."""
    analysis = keep_kinds(analyze(recording(util=steps((97, 100)))), {"idle_gap", "log_gap"})
    assert [answer.kind for answer in analysis.answers] == ["idle_gap", "log_gap"]


@pytest.mark.parametrize(
    ("covered", "said"), [(59.56, "only 59.5 s"), (59.99, "only 59.9 s"), (59.4, "only 59 s"), (0.0, "only one moment")]
)
def test_what_is_a_little_too_short_is_not_rounded_to_what_is_needed(covered: float, said: str) -> None:
    """Or it would cover what it is said to lack."""
    missing = too_short("low_use", covered, 60.0)
    assert missing.reason.endswith(said)
    assert missing.recording == "a log of at least 1 min"
