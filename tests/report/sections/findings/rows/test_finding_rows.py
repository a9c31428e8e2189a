"""Rows of findings: each kind and cause once, over all runs."""

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import gpureport
from gpureport.comparison.study.factors import Factor
from gpureport.comparison.verdicts.finding_changes import can_tell
from gpureport.report import build
from gpureport.report.model.report_content import Report
from gpureport.report.wording import display
from gpureport.report.wording.ranges import format_gpu_time_range, format_range
from gpureport.testing import Analysis, Evidence, Finding, Recording, Severity, recording
from tests.report import examples, sample_reports

_SKIPPED = {"mapped", "recorded"}
FOLDERS = sorted(each.name for each in sample_reports.SAMPLES.iterdir() if each.is_dir() and each.name not in _SKIPPED)
SEVERITIES = list(Severity)
FORBIDDEN = ("≥", "≤", ">=", "<=", "pragmatic", "kinds", "judge", "_ratio", "_bytes", "not named", "None")


@cache
def _report(folder: str) -> Report:
    return sample_reports.report_on([folder])


def _chain(*findings: tuple[Finding, ...], step: str | None = None) -> Report:
    return _build(
        *(examples.pair(examples.run(f"run {number}", step=step), each) for number, each in enumerate(findings))
    )


def _build(*runs: tuple[Recording, Analysis], price: float | None = None) -> Report:
    return build(runs, title=None, command="", gpu_hour_price=price, version="0")


def _plain(text: str) -> str:
    return text.replace(display.GAP, " ")


def _start(seconds: float) -> Finding:
    gap = examples.idle_gap("gpu:0", 0, seconds)
    evidence = (
        Evidence(metric="duration", statistic="length", observed=seconds, unit="s"),
        Evidence(metric="duration", statistic="share of the run", observed=seconds / 600, unit="1"),
    )
    return replace(gap, kind="startup_idle", devices=(), evidence=evidence)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_finding_of_a_sample_is_in_one_row(folder: str) -> None:
    """Each card belongs to one row, and each kind and cause has one."""
    report, runs = _report(folder), sample_reports.runs(folder)
    assert Counter(card for row in report.rows for card in row.cards) == Counter(card.id for card in report.findings)
    found = {(finding.kind, finding.cause) for _, analysis in runs for finding in analysis.findings}
    assert len(report.rows) == len(found)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_gravest_comes_first_then_what_lost_most(folder: str) -> None:
    """Within a severity by the loss of the worst run."""
    report = _report(folder)
    cards = {card.id: card for card in report.findings}
    ranks = []
    for row in report.rows:
        held = [cards[name] for name in row.cards]
        lost = max(
            sum(card.lost_seconds or 0.0 for card in held if card.run_index == run)
            for run in {card.run_index for card in held}
        )
        ranks.append((-SEVERITIES.index(Severity(row.severity)), -round(lost, 6)))
    assert ranks == sorted(ranks)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_row_of_a_sample_says_everything_in_plain_words(folder: str) -> None:
    """Who, how much, what and what to do; what is made here has no signs of logic and no names of metrics."""
    for row in _report(folder).rows:
        assert all((row.title, row.runs, row.summary, row.advice)), row
        assert row.extent or row.kind == "full_precision", row
        text = " ".join((row.title, row.runs, row.extent, row.cost, row.advice, *row.caveats))
        assert not [word for word in FORBIDDEN if word in text.replace("gpu_util", "")], row


@pytest.mark.parametrize("folder", [name for name in FOLDERS if len(sample_reports.runs(name)) > 1])
def test_each_run_is_marked_once(folder: str) -> None:
    """Found where there is a finding; else not assessed where nobody could tell."""
    runs = sample_reports.runs(folder)
    for row in _report(folder).rows:
        assert [mark.run for mark in row.marks] == [bar.label for bar in _report(folder).gpu_time]
        for mark, (_, analysis) in zip(row.marks, runs, strict=True):
            own = [finding for finding in analysis.findings if finding.kind == row.kind]
            assert (mark.outcome == "found") <= bool(own)
            if not own:
                finding = next(f for _, each in runs for f in each.findings if f.kind == row.kind)
                assert mark.outcome == ("not found" if can_tell(analysis, finding) else "not assessed")


def test_runs_are_told_by_their_step() -> None:
    """All of them, those of one step, or the steps by name."""
    gap = examples.idle_gap("gpu:0", 100, 160)
    assert [row.runs for row in _chain((gap,), (gap,)).rows] == ["2 of 2 runs"]
    assert [row.runs for row in _chain((gap,), (), (gap,)).rows] == ["2 of 3 runs: run 0 and run 2"]
    same = [examples.pair(examples.run(f"a{number}", step="a"), (gap,)) for number in range(2)]
    other = examples.pair(examples.run("b", step="b"), ())
    assert [row.runs for row in _build(*same, other).rows] == ["2 of 2 runs of a"]


def test_a_single_run_names_its_gpus() -> None:
    """It has no marks, and speaks with the sentence of its finding."""
    (row,) = _chain((examples.idle_gap("gpu:1", 100, 160),)).rows
    assert (row.runs, row.marks, _plain(row.summary)) == ("GPU 1", (), "GPU 1 was idle for 60 s.")


def test_figures_of_several_runs_are_ranges() -> None:
    """The least and the most of the findings, with the unit once."""
    (row,) = _chain((_start(16),), (_start(25),)).rows
    assert _plain(row.extent).replace(" %", "%") == "16 to 25 s, 2.7 to 4.2% of a run"
    assert _plain(row.summary).replace(" %", "%") == "The first work came after 16 to 25 s, 2.7 to 4.2% of a run."


def test_without_evidence_the_worst_run_speaks() -> None:
    """Its sentence, with the name of the run."""
    calm, long = replace(_start(16), evidence=()), replace(_start(25), evidence=(), summary="It took 25 s.")
    (row,) = _chain((calm,), (long,)).rows
    assert _plain(row.summary) == "In the worst run (run 1): It took 25 s."


def test_what_follows_from_another_names_its_root() -> None:
    """By the id of the row, and in words among the caveats."""
    heat = examples.throttling("gpu:0", 100, 200)
    gap = replace(examples.idle_gap("gpu:0", 120, 160), root=heat.fingerprint)
    root, follower = _chain((heat, gap)).rows
    assert (root.root, follower.root) == ("", root.id)
    assert f"It follows from: {root.title}." in follower.caveats
    assert f"It explains: {follower.title}." in root.caveats


def test_limits_are_told_as_sentences() -> None:
    """That of heat as the driver's, which slows the GPU; a figure without a statistic has no empty place for it."""
    (heat,) = (row for row in _report("thermal_throttle").rows if row.kind == "thermal_throttle")
    assert "Heat slows this GPU from 88 °C on. The limit is the one nvidia-smi reports for the A10G." in map(
        _plain, heat.caveats
    )
    (gap,) = _chain((examples.idle_gap("gpu:0", 120, 160),)).rows
    assert [caveat for caveat in gap.caveats if ", ," in caveat] == []


def test_lost_time_costs_money() -> None:
    """At the price of a GPU-hour, where one is given."""
    runs = [examples.pair(examples.run("a", gpus=1), (examples.idle_gap("gpu:0", 0, 360),))]
    assert "0.3" in _build(*runs, price=3.0).rows[0].cost
    assert "," not in _build(*runs).rows[0].cost


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((16, 25), "16 to 25 s"),
        ((25,), "25 s"),
        ((81, 96), "1 min 21 s to 1 min 36 s"),
        ((55, 67), "55 s to 1 min 7 s"),
    ],
)
def test_a_range_says_its_unit_once(values: tuple[float, ...], expected: str) -> None:
    """Unless a length takes two units."""
    assert _plain(format_range(values, display.duration)) == expected


@pytest.mark.parametrize("kind", ["startup_idle", "cpu_bound_single", "mem_headroom"])
def test_figures_of_the_recorded_steps_are_those_of_their_findings(kind: str) -> None:
    """Of 15 recorded runs: the least and the most, computed here from the findings."""
    runs = _recorded_steps()
    row = next(row for row in _build(*runs).rows if row.kind == kind)
    found = [f for _, analysis in runs for f in analysis.findings if f.kind == kind]
    if kind == "mem_headroom":
        free = [e.observed for f in found for e in f.evidence if e.statistic == "free at the peak"]
        assert row.extent == f"{format_range(free, display.memory)} unused"
        return
    lost = [f.lost_gpu_seconds or 0.0 for f in found]
    held = {id(f): analysis.job_gpu_seconds for _, analysis in runs for f in analysis.findings}
    shares = [(f.lost_gpu_seconds or 0.0) / held[id(f)] for f in found]
    length, share = format_range(lost, display.duration), format_range(shares, display.percent)
    lost_word = "" if kind == "startup_idle" else " lost"
    assert row.extent == f"{length}{lost_word}, {share} of a run"
    assert [mark.outcome for mark in row.marks].count("found") == len(found)
    assert len(row.marks) == len(runs) == 15


@cache
def _recorded_steps() -> tuple[tuple[Recording, Analysis], ...]:
    folder = sample_reports.SAMPLES / "recorded" / "training_steps"
    runs = []
    for log in sorted(folder.glob("*/*/nvidia-smi.csv.gz")):
        (recording,) = gpureport.read(log.parent)
        labelled = replace(recording, run=replace(recording.run, step=log.parents[1].name))
        runs.append((labelled, gpureport.analyze(labelled)))
    return tuple(runs)


def test_the_recorded_steps_lead_to_their_next_step() -> None:
    """Start-up first, since it is what is left; then the free memory."""
    first, second, _ = _build(*_recorded_steps()).actions
    assert (first.title, second.title) == ("Shorten start-up", "Use the free memory")
    assert first.gain.startswith("Saves up to 43")
    assert "was still empty" in first.text
    assert first.certainty == "Confidence high: in 15 of 15 runs."


def test_full_precision_over_runs_is_ascribed_to_what_showed_it() -> None:
    """To the tensor cores where they did; to no setting that nobody stated."""
    runs = []
    for name in ("a", "b"):
        made = recording(util=np.full(300, 95.0), tensor_active=0.0)
        named = replace(made, run=replace(made.run, id=name, name=name))
        runs.append((named, gpureport.analyze(named)))
    (row,) = (row for row in _build(*runs).rows if row.kind == "full_precision")
    assert row.summary == "Tensor cores worked for 0% of the busy time; 16-bit precision may be faster."


def test_advice_that_a_later_step_made_needless_is_said_to_be() -> None:
    """A gap of the first run alone is gone; one of the last is not, and what lies side by side is no chain."""
    gap = (examples.idle_gap("gpu:0", 0, 60),)
    (gone,), (came,) = _chain(gap, ()).rows, _chain((), gap).rows
    assert gone.advice.startswith("Nothing left to do: run 1 no longer shows it. The advice was: ")
    assert not came.advice.startswith("Nothing left to do")
    heat = replace(gap[0], kind="thermal_throttle")
    assert not _chain((heat,), ()).rows[0].advice.startswith("Nothing left to do")
    runs = [
        examples.pair(replace(examples.run(name), params=(("lr", name),)), found)
        for name, found in (("1", gap), ("2", ()))
    ]
    beside = build(runs, title=None, command="", gpu_hour_price=None, version="0", by=(Factor(kind="param", key="lr"),))
    assert [row.advice for row in beside.rows] == [came.advice]


def test_ranges_of_gpu_time_have_one_unit() -> None:
    """That of the least, unless the most would be a long number in it."""
    assert _plain(format_gpu_time_range((55.3, 67.2))) == "55.3 to 67.2 GPU-s"
    assert _plain(format_gpu_time_range((30, 7200))) == "0.00833 to 2.00 GPU-h"
