"""What to do next: at most three things, the most promising first, and no promise that is not kept."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from gpureport import testing
from gpureport.findings import AdvisedStep
from gpureport.report import build
from gpureport.report.model.head import Action
from gpureport.report.model.report_content import Report
from gpureport.report.sections.findings.next_actions import action_wording
from gpureport.report.wording import display, terms
from gpureport.testing import Analysis, Confidence, Evidence, Finding, NotJudged, Recording, Severity, Work, analyze
from tests.report import examples, sample_reports

_SKIPPED = {"mapped", "recorded"}
FOLDERS = sorted(each.name for each in sample_reports.SAMPLES.iterdir() if each.is_dir() and each.name not in _SKIPPED)
FORBIDDEN = ("≥", "≤", ">=", "<=", "pragmatic", "{", "}", "None", "may up to")
WORK = Work(amount=1000, unit="steps")


@cache
def _report(folder: str) -> Report:
    return sample_reports.report_on([folder])


def _actions(*runs: tuple[Recording, Analysis]) -> tuple[Action, ...]:
    return build(runs, title=None, command="", gpu_hour_price=None, version="0").actions


def _single(*findings: Finding, gpus: int = 1) -> tuple[Action, ...]:
    return _actions(examples.pair(examples.run("a", gpus=gpus, work=WORK), findings))


def _titles(actions: tuple[Action, ...]) -> list[str]:
    return [action.title for action in actions]


def _finding(kind: str, start: float = 100, end: float = 160, **changed: object) -> Finding:
    return replace(examples.idle_gap("gpu:0", start, end), kind=kind, evidence=(), **changed)  # type: ignore[arg-type]  # each test names real fields


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_sample_gets_at_most_three_actions_in_plain_words(folder: str) -> None:
    """Each with a gain, a reason and how sure it is; a link leads to a row."""
    report = _report(folder)
    rows = {row.id for row in report.rows}
    assert len(report.actions) <= 3
    assert len(set(_titles(report.actions))) == len(report.actions)
    for action in report.actions:
        assert all((action.title, action.gain, action.text, action.certainty)), action
        assert len(action.title.split()) <= 9
        assert action.finding in rows | {""}
        text = f"{action.title} {action.gain} {action.text} {action.certainty}"
        assert not [word for word in FORBIDDEN if word in text], action


@pytest.mark.parametrize("folder", FOLDERS)
def test_savings_add_up_to_no_more_than_all(folder: str) -> None:
    """Shares that are promised do not overlap, so that together they are at most the whole."""
    gains = [action.gain for action in _report(folder).actions if action.gain.startswith("Saves")]
    shares = [float(gain.removeprefix("Saves up to ").split(display.GAP)[0].split("%")[0]) for gain in gains]
    assert sum(shares) <= 100


def test_every_kind_has_an_action_or_asks_for_nothing() -> None:
    """So that no finding is left without words."""
    for kind in terms.KINDS:
        assert (action_wording.find_wording(kind, None) is None) == (kind in action_wording.NO_ACTION)


def test_the_gravest_comes_first_then_the_largest_saving() -> None:
    """Certain ones before doubtful ones of the same size."""
    small = _finding("tail_idle", 500, 560, devices=())
    doubtful = _finding("cpu_bound", 200, 280, confidence=Confidence.LOW)
    grave = _finding("mem_leak", 0, 0, severity=Severity.PROBLEM, lost_gpu_seconds=None, intervals=())
    assert _titles(_single(small, doubtful, grave)) == [
        "Stop the growth of memory",
        "Release the GPU after the work",
        "Take work off the CPU",
    ]


def test_what_an_earlier_step_had_is_not_advised() -> None:
    """Only findings of the last step are."""
    runs = [examples.run(name, work=WORK, step=name) for name in ("first", "last")]
    heat, start = examples.throttling("gpu:0", 100, 200), _finding("tail_idle", 500, 560, devices=())
    actions = _actions(examples.pair(runs[0], (heat,)), examples.pair(runs[1], (start,)))
    assert _titles(actions)[0] == "Release the GPU after the work"
    assert "Cool GPU 0" not in _titles(actions)
    assert actions[0].certainty == "Confidence high: in 1 of 2 runs: last."


def test_no_saving_is_promised_from_a_share_that_overlaps_another() -> None:
    """Both speak of the same time of the same GPU."""
    apart = [_finding("cpu_bound", 100, 160), _finding("tail_idle", 500, 560)]
    assert {action.gain for action in _single(*apart)} == {f"Saves up to 10{display.percent(0.1)[2:]} of the run"}
    together = [_finding("cpu_bound", 100, 160), _finding("no_progress", 150, 560)]
    assert {action.gain for action in _single(*together)} == {"Gain not known"}


def test_no_workers_are_advised_beyond_what_the_steps_say() -> None:
    """Where the step is ruled out, as by a worker a core, none; where it has no number, one at a time."""
    gap, ahead = replace(_finding("idle_gap"), cause="data"), AdvisedStep(name="prefetch")
    (ruled_out,) = _single(replace(gap, steps=(ahead,)))
    assert (ruled_out.title, "more loader workers" in ruled_out.text) == ("Load data ahead", False)
    (unnumbered,) = _single(replace(gap, steps=(ahead, AdvisedStep(name="loader_workers"))))
    assert unnumbered.text.endswith("use more loader workers while cores are free. Add one at a time.")


def test_what_follows_from_another_is_not_advised() -> None:
    """Its root is."""
    heat = examples.throttling("gpu:0", 100, 200)
    gap = replace(examples.idle_gap("gpu:0", 120, 160), root=heat.fingerprint)
    assert _titles(_single(heat, gap)) == ["Cool GPU 0"]


def test_a_power_cap_lies_below_what_the_gpu_draws_while_slowed() -> None:
    """A limit above that changes nothing."""
    drawn = Evidence(metric="gpu_power_watts", statistic="mean while slowed", observed=226.0, unit="W")
    cool, cap = _single(replace(examples.throttling("gpu:0", 100, 200), evidence=(drawn,)))
    assert (cool.title, cap.title, cap.gain) == (
        "Cool GPU 0",
        "Until then, cap its power",
        "Gain not known",
    )
    assert cap.command == "nvidia-smi -i 0 -pl 200"
    assert f"226{display.GAP}W" in cap.text


def test_nothing_is_prescribed_for_an_unknown_cause() -> None:
    """The CPU is to be logged instead."""
    (action,) = _single(_finding("low_util_cause_unknown"))
    assert (action.title, action.gain) == ("Record the CPU beside the GPU", "May show the cause")
    assert action.command == "gpureport record -- COMMAND"


def test_beside_other_programs_what_costs_least_is_tried_first() -> None:
    """More workers; where the job has one a core, a measurement."""
    unclear = replace(_finding("low_util_cause_unknown", 0, 500), cause="not shown beside other programs")
    (alone,) = _single(unclear)
    assert (alone.title, alone.gain) == ("Measure without other programs", "May show the cause")
    (workers,) = _single(replace(unclear, steps=(AdvisedStep(name="loader_workers"),)))
    assert (workers.title, workers.gain) == ("Try more loader workers", "Gain not known")
    assert "measure without the other programs" in workers.text


@pytest.mark.parametrize("kind", ["low_util_cause_unknown", "underutilised"])
def test_low_use_without_a_known_cause_gets_a_cheap_trial_first(kind: str) -> None:
    """More workers, how many, and what comes next; the CPU is to be recorded where it was not."""
    step = AdvisedStep(name="loader_workers", suggestion="Try 5 instead of 2.")
    room = _finding("mem_headroom", severity=Severity.INFO)
    first, *others = _single(replace(_finding(kind), steps=(step,)), room)
    assert (first.title, first.gain) == ("Try more loader workers", "Gain not known")
    assert "Try 5 instead of 2. That is a cheap trial" in first.text
    assert first.text.endswith("If it changes nothing, profile ten iterations.")
    assert ("Record the CPU beside the GPU" in _titles(tuple(others))) == (kind == "low_util_cause_unknown")


def test_workers_without_a_known_number_are_to_be_doubled() -> None:
    """In every action that names them."""
    (room,) = _single(_finding("workers_headroom", severity=Severity.INFO))
    assert "Double their number, to at most one a core. Go on while cores and host memory are free." in room.text


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_word_to_fill_is_left_in_a_row(folder: str) -> None:
    """Rows of findings say the same as actions do."""
    assert not [row.advice for row in _report(folder).rows if "{" in row.advice]


def _paused(level: float, *, steps: int = 600, idle: int = 0, **params: str) -> tuple[Action, ...]:
    """Return the actions for a run of one GPU that computes for a share of every sample, between two idle stretches."""
    run = replace(examples.run("a", gpus=1, seconds=steps + 2 * idle - 1, work=WORK), params=tuple(params.items()))
    used = np.pad(level + 0.02 * (np.arange(steps) % 3 - 1), idle)
    recording = examples.recording(run, [np.asarray(used, dtype=np.float64)])
    return _actions((recording, analyze(recording)))


def test_short_pauses_without_a_finding_get_the_same_trial() -> None:
    """The log shows no cause, which is said; a GPU that is used well, or a run too short to tell, gets none."""
    (first,) = _paused(0.68)
    assert (first.title, first.gain, first.finding) == ("Try more loader workers", "Gain not known", "")
    assert "computed 68% of 9 min 59 s; the log doesn't show why. Double their number" in first.text.replace(
        display.GAP, " "
    )
    used_well = next(one for one in _paused(0.80) if one.title == "Try more loader workers")
    assert used_well.text.replace(display.GAP, " ").startswith(
        "Short pauses took 20% of the observed time; the log doesn't"
    )
    assert "Try more loader workers" not in _titles(_paused(0.95))
    assert "Try more loader workers" not in _titles(_paused(0.68, steps=15))


def test_workers_beyond_the_cores_are_tried_where_the_job_hardly_uses_them() -> None:
    """Other programs fill the CPU: no cores are free, and the two workers that wait for storage compete for none."""
    run = testing.recording(util=76 + 2 * (np.arange(300.0) % 3 - 1))
    host = {"cpu_utilization_ratio": 0.95, "cpu_logical_cores": 2.0, "job_cpu_cores": 0.01}
    run = testing.with_host(run, np.arange(300.0), **host)
    run = replace(run, run=replace(run.run, params=(("num_workers", "2"),), work=WORK))
    (first,) = _actions((run, analyze(run)))
    assert (first.title, "Try 3 instead of 2" in first.text) == ("Try more loader workers", True)
    assert "while CPU cores are free" not in first.text
    assert first.text.endswith("If that changes nothing, measure without the other programs.")


def test_start_up_and_tail_are_no_low_use() -> None:
    """Between them a GPU is used well that computes for little more than half of the whole time, or is not."""
    assert "Try more loader workers" not in _titles(_paused(0.95, steps=400, idle=160))
    trial = next(one for one in _paused(0.68, steps=400, idle=160) if one.title == "Try more loader workers")
    text = trial.text.replace(display.GAP, " ")
    assert text.startswith("Mid-job, the GPU computed 68% of 6 min 40 s; the log doesn't show why.")


def test_short_pauses_beside_a_worker_a_core_are_profiled() -> None:
    """More workers would only slow one another down."""
    assert _titles(_paused(0.68, num_workers="16", cpu_count="16")) == ["Profile ten iterations"]


def test_an_action_of_two_findings_stands_where_the_graver_one_does() -> None:
    """Not where the last one of its title does."""
    unclear, room = _finding("low_util_cause_unknown"), _finding("mem_headroom", severity=Severity.INFO)
    assert _titles(_single(unclear, room)) == ["Record the CPU beside the GPU", "Use the free memory"]


def test_a_run_too_short_to_assess_promises_nothing() -> None:
    """What it says of its GPUs may be done, but no share of its time is a saving, and the lead names no first step."""
    recording, analysis = examples.pair(examples.run("a", gpus=2), (_finding("unused_gpu", 0, 6),))
    short = replace(analysis, run=replace(analysis.run, ended=analysis.run.started + 6_000_000))
    content = build([(recording, short)], title=None, command="", gpu_hour_price=None, version="0")
    assert content.actions[0].gain == "Gain not known"
    assert "too little to assess" in content.verdict.sentence
    assert not any("First:" in text for text in content.verdict.details)


def test_the_largest_loss_comes_first_though_its_gain_is_not_known() -> None:
    """It is what the headline tells of; a start-up looks long in a run this short."""
    low = _finding("low_util_cause_unknown", 100, 400, severity=Severity.WARNING)
    start = _finding("startup_idle", 0, 60, severity=Severity.WARNING, devices=())
    assert _titles(_single(start, low)) == ["Record the CPU beside the GPU", "Shorten start-up"]


@pytest.mark.parametrize(("end", "is_advised"), [(100, True), (500, False)])
def test_no_larger_batch_while_gpus_wait_most_of_the_time(end: float, *, is_advised: bool) -> None:
    """It would wait for its data as well."""
    wait, room = _finding("cpu_bound", 0, end), _finding("mem_headroom", severity=Severity.INFO)
    assert ("Use the free memory" in _titles(_single(wait, room))) == is_advised


def test_a_larger_batch_and_a_smaller_gpu_are_alternatives() -> None:
    """One action, and the same words beside both findings; each alone asks for itself."""
    room, large = (_finding(kind, severity=Severity.INFO) for kind in ("mem_headroom", "oversized_gpu"))
    report = build(
        [examples.pair(examples.run("a", gpus=1, work=WORK), (room, large))],
        title=None,
        command="",
        gpu_hour_price=None,
        version="0",
    )
    assert _titles(report.actions) == ["Use the free memory or a smaller GPU"]
    either = "Either keep this GPU and raise the batch size step by step, or keep the batch size and try a smaller GPU."
    assert report.actions[0].text.endswith(either)
    assert {row.advice for row in report.rows} == {
        f"Use the free memory or a smaller GPU: {display.lower_first(either)}"
    }
    assert _titles(_single(room)) == ["Use the free memory"]
    assert _titles(_single(large)) == ["Try a smaller GPU"]


def test_single_runs_a_step_are_to_be_repeated() -> None:
    """And the work done is asked for last, where there is room."""
    runs = [examples.pair(examples.run(name), ()) for name in ("a", "b")]
    assert _titles(_actions(*runs)) == ["Repeat each step", "Give the work done"]


def test_a_short_start_and_a_normal_limit_ask_for_nothing() -> None:
    """They are information alone."""
    start, limit = (_finding(kind, severity=Severity.INFO) for kind in ("startup_idle", "power_cap"))
    assert _single(start, limit) == ()


@pytest.mark.parametrize(("count", "said"), [(1, False), (2, True)])
def test_repetitions_too_short_for_checks_are_compared_all_the_same(count: int, *, said: bool) -> None:
    """So that to record for longer does not read as if the comparison were worth nothing."""
    missing = tuple(
        NotJudged(kind=kind, device=None, reason="too short", recording="", needed_seconds=600.0)
        for kind in ("idle_gap", "io_bound", "cpu_bound", "mem_leak", "thermal_throttle")
    )
    runs = [
        (recording, replace(analysis, not_judged=missing))
        for recording, analysis in (
            examples.pair(examples.run(f"{step}{place}", step=step, work=WORK))
            for step in ("a", "b")
            for place in range(count)
        )
    ]
    (longer,) = [
        action for action in _actions(*runs) if action.title.replace(display.GAP, " ") == "Record at least 10 min"
    ]
    assert ("Figures are compared all the same" in longer.text) is said
