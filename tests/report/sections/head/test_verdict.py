"""What the result may say, and what it must not."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport import recording_advice, testing
from gpureport.analysis.cost.cost import calculate_cost
from gpureport.analysis.cost.prices import Prices, Rate
from gpureport.analysis.rules import missing_metrics
from gpureport.data_quality import CLOCK_SET_BACK
from gpureport.importers.protocol.reject_reasons import NO_TIME
from gpureport.report import build
from gpureport.report.model.report_content import Report
from gpureport.report.sections.head.excluded_data import describe_unfinished_recordings
from gpureport.report.wording.display import GAP
from gpureport.testing import (
    Analysis,
    Check,
    CheckOutcome,
    ClockStep,
    Confidence,
    NotJudged,
    Rejected,
    Severity,
    TimePart,
    Work,
    analyze,
)
from tests.report import examples
from tests.report.content_leaves import leaves

TIMES = "\N{MULTIPLICATION SIGN}"


def report(*runs: examples.Pair, title: str | None = None) -> Report:
    """Return the content for some runs."""
    return build(runs, title=title, command="gpureport report a.csv", gpu_hour_price=None, version="0.1.0")


def divided(**seconds: float) -> examples.Pair:
    """Return a run of two GPUs whose time is divided as given."""
    recording, analysis = examples.pair(examples.run())
    times = tuple(replace(time, seconds=tuple(seconds.items())) for time in analysis.gpu_time)
    return recording, replace(analysis, gpu_time=times)


def sentence(content: Report) -> str:
    """Return the headline with ordinary spaces."""
    return content.verdict.sentence.replace(GAP, " ")


def test_no_utilisation_is_not_no_loss() -> None:
    """What was not recorded is neither zero nor a clean result."""
    info = examples.run()
    recording = examples.recording(info, [np.full(601, np.nan)] * 2)
    bare = tuple(replace(examples.statistics(gpu.id, idle=None), metrics=()) for gpu in info.gpus)
    _, analysis = divided(no_samples=600.0)
    content = report((recording, replace(analysis, statistics=bare)))
    assert sentence(content) == "No utilisation was recorded, so nothing can be said about GPU time."
    assert content.tiles[0].value == "cannot be told"
    assert [strip.gaps for strip in content.timeline[0].strips] == [((0.0, 600.0),)] * 2


@pytest.mark.parametrize("seconds", [20, 36, 96, 300])
def test_no_loss_is_never_said_of_gpus_that_worked_little(seconds: int) -> None:
    """Whatever was found: mean utilisation, time below its levels, and pauses where no finding has them."""
    util = np.tile([70.0, 60.0, 66.0, 64.0], seconds)[:seconds]
    run = testing.recording(util=util)
    content = report((run, analyze(run)))
    assert sentence(content).startswith("The GPU computed 65% of ")
    assert sentence(content).endswith("; the log doesn't show why.")
    levels = "below 25% for 0% of the time, below 50% for 0% and below 70% for 75%; short pauses took 35%."
    assert f"Mean utilisation 65%: {levels}" in [note.replace(GAP, " ") for note in content.verdict.notes]


@pytest.mark.parametrize(
    ("used", "is_low"), [([70.0, 60.0, 66.0, 64.0], True), ([74.0, 70.0, 73.0, 71.0], False)], ids=["low", "used well"]
)
def test_start_up_is_no_low_use(used: list[float], *, is_low: bool) -> None:
    """Nine seconds of it are too short for a finding, and let the mean of a minute fall below 70%."""
    run = testing.recording(util=np.concatenate([np.zeros(9), np.tile(used, 15)]))
    said = sentence(report((run, analyze(run))))
    assert said.startswith("Mid-job, the GPU computed 65% of") == is_low
    assert said.endswith("; the log doesn't show why.") == is_low


def test_a_mean_that_a_finding_tells_stands_once() -> None:
    """Its figure ends with the first and the last sample, so that a second one could be rounded otherwise."""
    run = testing.recording(util=np.tile([60.0, 20.0], 60), cpu=np.full(120, 99.0))
    content = report((run, analyze(run)))
    assert content.tiles[0].label == "GPU use"
    notes = [note.replace(GAP, " ") for note in content.verdict.notes]
    assert any(note.startswith("Utilisation was below 50% for 50% of the time") for note in notes), notes
    assert not any("Mean utilisation" in note for note in notes)


@pytest.mark.parametrize("seconds", [20, 96, 300])
def test_little_computing_is_never_hardly_any_loss(seconds: int) -> None:
    """What lies in pauses that no check could assess may all have been lost: no part of the page calls it nothing."""
    run = testing.recording(util=np.tile([24.0, 22.0, 26.0], seconds)[:seconds], every=10.0 if seconds == 20 else 1.0)
    content = report((run, replace(analyze(run), findings=())))
    texts = [leaf.text.replace(GAP, " ") for leaf in leaves(content)]
    assert not [text for text in texts if "ardly any GPU" in text or "othing lost" in text or text.endswith("lost 0%")]


def test_a_loss_beside_long_pauses_is_the_least() -> None:
    """Of a run that computed a quarter of its time 2% idle is not all that it may have lost."""
    lead = report(divided(computing=150, short_pauses=440, idle=10)).verdict.details[0].replace(GAP, " ")
    assert lead == "At least 1.7% of 20.0 GPU-min was lost: all of it idle."
    content = report(divided(computing=150, short_pauses=450))
    assert content.verdict.details[0].replace(GAP, " ") == (
        "How much GPU time was lost is not known: short pauses took 75%."
    )
    assert content.tiles[0].context.replace(GAP, " ") == "Of 20.0 GPU-min; lost not known"


def test_short_pauses_of_a_busy_run_are_no_doubt() -> None:
    """Up to 30% of the time they call for no change."""
    content = report(divided(computing=450, short_pauses=150))
    assert "Hardly any GPU time was lost." in content.verdict.details


def test_gpus_that_worked_enough_need_no_levels() -> None:
    """Above 70% the tiles and tables are enough."""
    run = testing.recording(util=np.tile([90.0, 80.0], 60))
    content = report((run, analyze(run)))
    assert sentence(content) == "No problems found in 9 checks; 24 more could not be assessed."
    assert not any("Mean utilisation" in line for line in content.verdict.notes)


def test_missing_utilisation_is_told() -> None:
    """From 5% of the GPU time on."""
    said = report(divided(computing=540, no_samples=60)).verdict
    assert "Hardly any GPU time was lost. Another 10% holds no data." in [
        line.replace(GAP, " ") for line in said.details
    ]
    assert not any("holds no utilisation" in line for line in said.notes), "once"
    few = report(divided(computing=580, no_samples=20)).verdict
    assert not any("holds no" in line for line in (*few.details, *few.notes))
    most = report(divided(computing=100, idle=100, no_samples=400)).verdict
    assert any("holds no utilisation" in line for line in most.notes)


def test_shares_of_the_loss_add_up() -> None:
    """What is not named is summed up, and throttled time counts as lost."""
    content = report(divided(computing=400, idle=100, throttled=60, startup=20, tail=15, low_use=5))
    assert sentence(content) == "33% of the GPU time was lost: idle 17%."
    assert content.verdict.details[0].replace(GAP, " ") == (
        "33% of 20.0 GPU-min was lost: idle 17%, slowed clocks 10%, start-up 3.3% and other 3.3%."
    )
    assert content.tiles[1].context == "Idle 17%, slowed clocks 10%, start-up 3.3%"


@pytest.mark.parametrize(
    ("currency", "cost"), [("EUR", " (\N{EURO SIGN}0.28 of \N{EURO SIGN}0.83)"), ("", "")], ids=["euro", "none"]
)
def test_the_loss_has_its_cost_where_a_price_is_stated(currency: str, cost: str) -> None:
    """A bare number without a currency would be no cost that anyone can read."""
    recording, analysis = divided(computing=400, idle=200)
    idle = replace(examples.idle_gap("gpu:0", 0, 400), lost_gpu_seconds=400.0)
    analysis = replace(analysis, findings=(idle,))
    prices = Prices(currency=currency, date="2026-03-01", rates=(Rate(amount=2.5, source="x"),))
    content = report((recording, replace(analysis, cost=calculate_cost(analysis, prices))))
    assert content.verdict.details[0].replace(GAP, " ") == f"33% of 20.0 GPU-min{cost} was lost: all of it idle."


def test_the_cost_of_repetitions_is_of_one_run_as_their_time_is() -> None:
    """Three runs of 20 GPU-min at 2.5 an hour cost 0.83 each: their sum beside the time of one would be three times."""
    prices = Prices(currency="USD", date="2026-03-01", rates=(Rate(amount=2.5, source="x"),))
    runs = []
    for place in range(3):
        recording, analysis = divided(computing=400, idle=100, startup=100)
        info = replace(analysis.run, id=f"run{place}", name=f"run{place}", step="a")
        analysis = replace(analysis, run=info, cost=calculate_cost(analysis, prices))
        runs.append((replace(recording, run=info), analysis))
    content = report(*runs)
    lost = "33% of 20.0 GPU-min a run ($0.28 of $0.83) was lost: idle 17% and start-up 17%."
    assert content.verdict.details[0].replace(GAP, " ") == lost
    tile = next(tile for tile in content.tiles if tile.label == "GPU time lost")
    assert tile.unit.replace(GAP, " ") == "of 20.0 GPU-min a run"


@pytest.mark.parametrize(("throttled", "lost"), [(60.0, "At least 10% of"), (0.0, "GPU time was lost; how much")])
def test_an_unknown_loss_is_not_none(throttled: float, lost: str) -> None:
    """Throttling without a figure loses time; a fact about memory does not."""
    recording, analysis = divided(computing=600 - throttled, throttled=throttled)
    heat = replace(examples.throttling("gpu:0", 0, 300), lost_gpu_seconds=None)
    memory = replace(examples.idle_gap("gpu:0", 0, 300), kind="mem_prealloc", lost_gpu_seconds=None)
    content = report((recording, replace(analysis, findings=(heat, memory))))
    assert {card.kind: card.lost for card in content.findings} == {
        "thermal_throttle": "loss not known",
        "mem_prealloc": "no direct loss",
    }
    assert sentence(content) == "GPU 0 overheats: slowed for 5 min."
    assert content.verdict.details[0].replace(GAP, " ").startswith(lost)
    assert {tile.label: tile.value for tile in content.tiles}["GPU time lost"] != "0%"


def test_what_is_left_of_the_loss_is_named_where_it_is_one_thing() -> None:
    """A class too small to be named beside larger ones has its name where nothing else is left."""
    content = report(divided(computing=500, idle=97, startup=2))
    assert content.verdict.details[0].replace(GAP, " ") == "17% of 20.0 GPU-min was lost: idle 16% and start-up 0.3%."


def test_a_lost_gpu_is_part_of_the_loss() -> None:
    """Its time is a class of what was lost: the lead counts it there, and names it once."""
    recording, analysis = divided(computing=520, startup=20, gpu_lost=60)
    gone = replace(examples.idle_gap("gpu:1", 500, 600), kind="gpu_lost", cause="lost", severity=Severity.PROBLEM)
    content = report((recording, replace(analysis, findings=(gone,))))
    assert sentence(content) == "GPU 1 stops responding 1 min 40 s before the end."
    assert content.verdict.details[0].endswith("was lost: lost GPUs 10% and start-up 3.3%.")


LISTED = "is listed as idle; the rest of this idle time is listed"


def test_a_few_samples_are_too_few() -> None:
    """Three rows of two GPUs give no share, and GPUs were recorded."""
    info = examples.run(seconds=2)
    content = report((examples.recording(info), examples.analysis(info, idle=1.0)))
    assert sentence(content) == "Only 3 samples of each GPU in 2 s: too little to assess."
    assert content.tiles[0].value == "cannot be told"
    assert "No GPU was recorded" not in repr(content)


def brief(pair: examples.Pair) -> Analysis:
    """Return the analysis of a run whose GPUs were observed for half a minute."""
    found = tuple(replace(entry, observed_seconds=30.0) for entry in pair[1].statistics)
    return replace(pair[1], statistics=found)


def test_a_short_step_is_not_compared() -> None:
    """Neither figures nor findings of the step before are set against it."""
    first = examples.pair(examples.run("a"), (examples.idle_gap("gpu:0", 100, 160),))
    second = examples.pair(examples.run("b", seconds=19), idle=1.0)
    content = report(first, (second[0], brief(second)))
    assert sentence(content) == "Too short to compare: record every step for longer."
    assert "Under 20\N{NO-BREAK SPACE}s was recorded of b." in content.verdict.details
    assert content.findings[0].status == "the last step cannot tell"


def test_a_step_just_too_short_is_not_shown_as_long_enough() -> None:
    """19.5 s would round to the 20 s that a comparison takes; to record longer comes first, and no finding does."""
    first = examples.pair(examples.run("a"), (examples.idle_gap("gpu:0", 100, 160),))
    short = examples.run("b", seconds=19)
    second = examples.pair(replace(short, ended=short.ended + 500_000), (examples.idle_gap("gpu:0", 2, 10),), idle=1.0)
    content = report(first, (second[0], brief(second)))
    lead = " ".join(content.verdict.details).replace("\N{NO-BREAK SPACE}", " ")
    assert lead.startswith("Under 20 s was recorded of b (19.5 s).")
    assert "First:" not in lead
    assert content.actions[0].title == "Record every step for longer"
    assert "The shortest step lasts 19.5 s." in content.actions[0].text.replace("\N{NO-BREAK SPACE}", " ")


def test_every_short_step_is_named_and_the_head_says_whose_loss_it_tells() -> None:
    """Those between first and last as well, and that the figures are of the last."""
    first = examples.pair(examples.run("a"))
    short = [examples.pair(examples.run(name, seconds=19), idle=1.0) for name in ("b", "c")]
    content = report(first, *((recording, brief((recording, analysis))) for recording, analysis in short))
    assert "Under 20\N{NO-BREAK SPACE}s was recorded of b and c." in content.verdict.details
    assert any(note.startswith("In the last step: ") for note in content.verdict.notes)


def test_what_stayed_the_same_is_said_to_have_stayed() -> None:
    """No change from a figure to itself."""
    content = report(examples.pair(examples.run("a")), examples.pair(examples.run("b")))
    assert sentence(content) == "No clear change in GPU utilisation."
    assert content.steps is not None
    assert {cell.change for cell in content.steps.rows[1].cells} == {None}


def test_several_runs_in_the_subtitle() -> None:
    """Steps, their runs, every model, and when."""
    first, second = examples.run("a", gpus=1), examples.run("b", seconds=1200, model="NVIDIA L4")
    assert report(examples.pair(first), examples.pair(second)).subtitle == (
        f"a → b · 2 steps {TIMES} 1 run · 1 {TIMES} NVIDIA H100 80GB HBM3; 2 {TIMES} NVIDIA L4 · "
        "14 March 2026, 09:26 to 09:46"
    )
    assert report(examples.pair(first)).subtitle.endswith(f"10{GAP}min, recorded every 1{GAP}s")


def test_work_in_the_subtitle_is_in_its_own_unit() -> None:
    """Samples of a data set keep their name: the sampling of the log is said in another word."""
    subtitle = report(examples.pair(examples.run(work=Work(amount=32_000, unit="samples")))).subtitle
    assert "· 32,000 samples ·" in subtitle
    assert subtitle.count("sample") == 1


def test_long_names_are_cut_and_stay_apart() -> None:
    """Ten thousand characters do not fill the page."""
    runs = [examples.pair(examples.run("n" * 10_000, step=f"{'s' * 5000}{end}{'s' * 5000}")) for end in "ab"]
    content = report(*runs, title="t" * 10_000)
    assert len(content.title) == 120
    assert len({bar.label for bar in content.gpu_time}) == 2
    assert max(len(bar.label) for bar in content.gpu_time) < 70


def test_what_to_record_stands_once() -> None:
    """Lines say what is missing in words; the end names the one command, and the raw ones each once."""
    missing = [
        missing_metrics.not_recorded(kind, None, metric, "cpu_utilization_ratio")
        for kind, metric in (("power_cap", "gpu_power_limit_watts"), ("thermal_throttle", "gpu_temperature_celsius"))
    ]
    judgement = report(examples.pair(examples.run(), (), tuple(missing))).judgement
    assert judgement.advice == recording_advice.RECORDS_MISSING
    assert judgement.command == recording_advice.GPU_COMMAND
    assert judgement.other_commands == (recording_advice.HOST_COMMAND,)
    assert {line.recording for line in judgement.lines} == {""}
    assert report(examples.pair(examples.run(), (), ())).judgement.command == ""


def test_rejected_lines_are_told_at_the_head_where_they_outnumber_the_kept() -> None:
    """With the reason of most, and what reads rows without a time."""
    recording, analysis = divided(computing=600.0)
    few = Rejected(reason="torn line", rows=3, first_line=9)
    for rows, reason, said in (
        (313, NO_TIME, "316 of 333 lines were rejected (most of them: no time stamp): pass --interval SECONDS to read"),
        (313, "torn line", "316 of 333 lines were rejected (most of them: torn line): see Data quality"),
        (5, NO_TIME, ""),
    ):
        rejected = (few, Rejected(reason=reason, rows=rows, first_line=21))
        quality = replace(analysis.run.quality, lines=333, rows_kept=20, rejected=rejected)
        made = report((recording, replace(analysis, run=replace(analysis.run, quality=quality))))
        assert made.verdict.details[0].startswith(said)
        assert ("rejected" in " ".join(made.verdict.details)) == bool(said)


def test_idle_time_without_a_finding_is_told() -> None:
    """Idle before or after the work that no finding names, with the kinds that could not be judged."""
    recording, analysis = divided(computing=540.0, idle=60.0)
    times = tuple(
        replace(time, parts=(TimePart(name="idle", cause="outside gaps", seconds=60.0),)) for time in analysis.gpu_time
    )
    bare = replace(analysis, gpu_time=times, findings=(), not_judged=())
    lead = report((recording, bare)).verdict
    assert lead.sentence.replace(GAP, " ").replace(" %", "%") == "10% of the GPU time was lost, all of it idle."
    assert lead.details == ()
    assert not any("Idle before" in note for note in lead.notes)
    unjudged = (NotJudged(kind="tail_idle", device=None, reason="too short", recording=""),)
    text = "Idle before or after work: "
    (second,) = (n for n in report((recording, replace(bare, not_judged=unjudged))).verdict.notes if n.startswith(text))
    assert "; not assessed: " in second
    parts = tuple(TimePart(name="idle", cause=cause, seconds=30.0) for cause in ("outside gaps", "unknown"))
    both = replace(bare, gpu_time=tuple(replace(time, parts=parts) for time in analysis.gpu_time))
    assert f"{text}5.0%." in [note.replace(GAP, " ") for note in report((recording, both)).verdict.notes]


def test_idle_time_that_a_finding_has_is_not_said_to_have_none() -> None:
    """A job that never worked is one finding of all its time."""
    run = testing.recording(util=np.zeros(300))
    content = report((run, analyze(run)))
    assert next(card.title for card in content.findings if card.is_open) == "Hardly any work"
    assert not any("of the GPU time was idle" in line for line in content.verdict.details)


def test_kinds_that_some_repetitions_could_judge_count_as_judged() -> None:
    """One of two runs of a step lacks a kind; of a step of one run that would be all there is."""
    missing = (NotJudged(kind="tail_idle", device=None, reason="too short", recording="a longer log"),)
    (first, one), (second, other) = (examples.pair(examples.run(name, step="s")) for name in ("a", "b"))
    one, other = replace(one, not_judged=()), replace(other, not_judged=missing)
    both = report((first, one), (second, other)).judgement.sentence
    assert both == "33 checks: 33 clear (1 not assessed in some runs)."
    alone = report((second, other)).judgement.sentence
    assert alone == "33 checks: 32 clear, 1 not assessed."


def test_what_can_be_tried_is_no_first_step_where_nothing_needs_doing() -> None:
    """Two sentences of one lead do not contradict each other."""
    steps = testing.steps
    run = testing.recording(util=steps((0, 10), (97, 590)), memory=steps((0, 10), (8, 590)), cpu=steps((20, 600)))
    details = " ".join(report((run, analyze(run))).verdict.details)
    assert "Nothing needs doing" in details
    assert details.endswith("Could be tried: use the free memory.")
    assert "First:" not in details


@pytest.mark.parametrize("pauses", [60, 59])
def test_a_run_with_notable_short_pauses_is_not_called_healthy(pauses: int) -> None:
    """From a tenth of the time on: no check explains them, so that a reader is not told to stop there."""
    content = report(divided(computing=600 - pauses, short_pauses=pauses))
    lead = " ".join(content.verdict.details)
    told = "No problems found; short pauses take 10% of the time."
    assert (sentence(content) == told) == (pauses == 60)
    assert sentence(content).startswith("Healthy") == (pauses == 59)
    assert ("Nothing needs doing" in lead) == (pauses == 59)
    assert ("All 33 checks were assessed. First: try more loader workers." in lead) == (pauses == 60)


def test_at_most_two_doubts_stand_before_all_else() -> None:
    """What must be known before the headline is believed: the others are notes, and none is said twice."""
    step = ClockStep(device="gpu:0", at=examples.at(60), step_seconds=-600.0, shift_seconds=600.0, cause=CLOCK_SET_BACK)
    quality = replace(examples.run().quality, unfinished=True, clock_steps=(step,))
    same = tuple(replace(gpu, uuid=f"GPU-{gpu.index}") for gpu in examples.run().devices)
    runs = [replace(examples.run(name, step=name), quality=quality, devices=same) for name in ("a", "b")]
    found = [examples.pair(run) for run in runs]
    verdict = report(*found).verdict
    assert verdict.doubts == 2
    assert "ran at the same time" in verdict.details[0]
    assert "are unfinished" in verdict.details[1]
    assert [note for note in verdict.notes if "The clock went back" in note] == list(verdict.notes[:1])
    assert report(examples.pair(examples.run())).verdict.doubts == 0


def test_only_runs_without_work_are_said_to_lack_it() -> None:
    """Of two unfinished runs the one without is named; of none, or of all, no name is needed."""
    quality = replace(examples.run().quality, unfinished=True)
    known = Work(amount=1000.0, unit="images")
    said = []
    for works in ((known, None, None), (known, known, known), (None, None, None)):
        runs = [
            replace(examples.run(name), quality=quality, work=work) for name, work in zip("abc", works, strict=True)
        ]
        said.append(describe_unfinished_recordings(runs).partition("killed")[2])
    todo = "is not known: give one --work for each source, or leave them out."
    assert said == [f"; the work of b and c {todo}", ".", f"; their work {todo}"]


@pytest.mark.parametrize(("seconds", "every", "is_coarse"), [(180, 1.0, False), (180, 60.0, True), (4, 1.0, True)])
def test_a_log_is_called_coarse_only_for_what_it_is_coarse_of(seconds: int, every: float, *, is_coarse: bool) -> None:
    """Minutes at a sample a second are not, whatever else makes a finding unsure; a few samples are."""
    info = replace(examples.run(), interval=every)
    gap = replace(examples.idle_gap("gpu:0", 100, 100 + seconds), confidence=Confidence.LOW)
    details = report(examples.pair(info, (gap,))).verdict.details
    assert ("The log shows this only coarsely, so confidence is low." in details) is is_coarse
    assert ("Confidence in the headline is low." in details) is not is_coarse


@pytest.mark.parametrize("outcome", [CheckOutcome.BROKEN, CheckOutcome.PASSED])
def test_a_run_that_breaks_a_rule_is_not_healthy(outcome: CheckOutcome) -> None:
    """The rule is told before all else, and nobody reads that nothing needs doing."""
    run = examples.pair(examples.run(), (), examples.NOT_JUDGED, idle=0.0)
    check = Check(limit="idle_ratio <= 5%", run="a", outcome=outcome, observed="7.5%")
    content = build([run], title=None, command="", gpu_hour_price=None, version="0", checks=[check])
    is_broken = outcome is CheckOutcome.BROKEN
    assert (sentence(content) == "1 rule failed; no check found a cause.") is is_broken
    assert (content.verdict.details[0] == "1 rule failed: idle_ratio <= 5% (7.5%).") is is_broken
    assert any(text.startswith("Nothing needs doing") for text in content.verdict.details) is not is_broken
