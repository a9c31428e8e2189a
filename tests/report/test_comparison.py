"""What `gpureport compare` prints."""

import json
from dataclasses import replace

import numpy as np
import pytest

from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.steps.sampled_run import build_sampled_run
from gpureport.comparison.study.factors import Factor
from gpureport.comparison.study.study import build_study
from gpureport.report.formats.json import comparison_json
from gpureport.report.formats.text import terminal_comparison
from gpureport.report.formats.text.terminal_tables import grid_lines
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.sections.comparison import comparison_content, figure_formats, step_charts
from gpureport.report.sections.comparison.comparison_content import ComparisonView
from gpureport.report.sections.head.lead import write_step_lead
from gpureport.report.wording.differences import difference_wording
from gpureport.report.wording.differences.comparison_reasons import SINGLE_RUN_SCATTER
from gpureport.report.wording.differences.relative_changes import format_relative_difference as relative
from gpureport.report.wording.display import GAP
from gpureport.report.wording.terminal_lines import Page
from gpureport.testing import Interval, Phase, Work
from tests.comparison.runs import level, sampled
from tests.report import examples
from tests.report.conftest import HOSTILE

GAPS = tuple(examples.idle_gap(f"gpu:{gpu}", at, at + 20) for gpu in (0, 1) for at in (100, 200, 300))
WORK = Work(amount=1000, unit="steps")


def chain(*names: str, work: Work | None = WORK, step: str | None = None) -> list[examples.Pair]:
    """Return a chain whose first run has idle gaps, and whose idle time halves from run to run."""
    return [
        examples.pair(examples.run(name, work=work, step=step), GAPS if place == 0 else GAPS[:1], idle=120.0 / 2**place)
        for place, name in enumerate(names)
    ]


def text(view: ComparisonView, width: int = 80) -> str:
    """Return a comparison as words on one line."""
    return " ".join(terminal_comparison.render(view, width).split())


def busy(name: str, level: float, step: str | None = None) -> examples.Pair:
    """Return twenty minutes of two GPUs at a level of utilisation, scattered by a point."""
    info = examples.run(name, seconds=1200, step=step)
    scatter = np.random.default_rng(len(name) + ord(name[-1])).normal(0, 0.01, (2, 1201))
    return examples.recording(info, list(np.round(level + scatter, 2))), examples.analysis(info)


def short_of_steady(name: str) -> examples.Pair:
    """Return a run of more than a minute that holds 10 s of steady state."""
    info = examples.run(name, seconds=70, work=None)
    settled = Phase(kind="steady", interval=Interval(info.started + 60_000_000, info.ended))
    return examples.recording(info), replace(examples.analysis(info), phases=(settled,))


def test_each_figure_has_before_after_difference_and_interval() -> None:
    """What had settled comes from the series, whole recordings from the analysis: both are shown."""
    (link,) = comparison_content.build_comparison_view([busy("a", 0.6), busy("b", 0.9)]).links
    rows = {row.head.text: [cell.text.replace(GAP, " ") for cell in row.cells] for row in link.figures.rows}
    before, after, difference, between = rows["GPU utilisation once settled"]
    assert (before, after) == ("60%", "90%")
    assert 29 < float(difference.removesuffix(" points")) < 31
    low, high = (float(end.split()[0]) for end in between.split(" to "))
    assert 28 < low < 30 < high < 32
    assert link.whole is not None
    plain = {row.head.text: [cell.text.replace(GAP, " ") for cell in row.cells] for row in link.whole.rows}
    assert plain["GPU utilisation"] == ["80%", "80%", "none", ""]


def test_a_pair_is_not_confirmed_and_repetitions_are_better() -> None:
    """One sentence comes first: what may be said of the figure the chain is judged by."""
    pair = comparison_content.build_comparison_view([busy("a", 0.6), busy("b", 0.9)]).sentence.replace(GAP, " ")
    assert pair == "GPU utilisation rises from 60% to 90%; unconfirmed, one run each."
    runs = [busy(f"{step}{k}", level, step) for step, level in (("old", 0.6), ("new", 0.9)) for k in range(3)]
    view = comparison_content.build_comparison_view(runs)
    assert view.sentence.replace(GAP, " ") == "GPU utilisation rises from 60% to 90%."
    assert view.notes[0].startswith("A change of +29 to +31 points (95% interval, 3 runs a step); largest loss")


def test_a_short_pair_is_told_with_its_width() -> None:
    """What five minutes allow stands beside the reason why they do not allow more."""
    short = [sampled(name, util=level(mean, 300, seed)) for name, mean, seed in (("a", 60, 1), ("b", 75, 2))]
    (found,) = (each for each in compare(short).deltas if each.primary)
    words = difference_wording.difference_sentence(found, figure_formats.choose_format(found.metric, None))
    assert words.replace(GAP, " ") == (
        "From a to b, there is not enough data to say whether GPU utilisation once settled changed. It went from 60% "
        "to 75% (+15.1 points, 95% interval −11.2 to +40.2 points). A load that changes slowly can differ as much "
        "between recordings this short: a lasts 4 min 59 s. Record 10 min or more, or repeat each step three times."
    )


def test_one_run_against_several_is_unconfirmed_in_words_of_its_own() -> None:
    """It is not one run each, and nothing says so."""
    runs = [busy("a", 0.6), *(busy(f"b{k}", 0.9, "b") for k in range(3))]
    view = comparison_content.build_comparison_view(runs)
    assert view.sentence.replace(GAP, " ") == "GPU utilisation rises from 60% to 90%; unconfirmed, too few runs."
    assert "unconfirmed (one run on one side)" in text(view)
    assert "one run each" not in text(view)
    lead = next(iter(write_step_lead(compare([build_sampled_run(*run) for run in runs]))))
    assert lead.startswith(
        f"Only one run of “a”: repeat it to confirm this. A rule decides all the same: {SINGLE_RUN_SCATTER}."
    )


def test_every_verdict_says_what_would_be_shown() -> None:
    """The detectable difference and the length for two points stand beside a verdict; a missing one has its reason."""
    (link,) = comparison_content.build_comparison_view([busy("a", 0.6), busy("b", 0.601)]).links
    found = {fact.name: fact.text.replace(GAP, " ") for fact in link.verdicts}
    settled = found["GPU utilisation once settled"]
    assert settled.startswith("No clear change. Recordings like these can show a difference of ")
    assert "±2.0 points takes 3 min 29 s of steady state in each run." in settled
    assert "with 95% confidence there is less than one such gap in 6 min 40 s." in settled
    assert found["GPU time a run"].startswith("Not enough data. A total grows with the work done")


def test_runs_as_alike_as_their_samples_can_show_state_no_size() -> None:
    """A difference of 0 or more is no size."""
    comparison = compare([build_sampled_run(*run) for run in (busy("a", 0.6), busy("b", 0.9))])
    delta = next(each for each in comparison.between("a", "b") if each.metric == "gpu_utilization_ratio")
    shown = figure_formats.select_formats(comparison.steps, units=figure_formats.gather_work_units(comparison))
    known, alike = (
        list(difference_wording.describe_precision(replace(delta, detectable_difference=size), shown[delta.metric]))
        for size in (0.01, 0.0)
    )
    assert (known[0].startswith("Recordings like these can show"), alike) == (True, [])


def test_what_became_of_findings_is_told_together() -> None:
    """Findings of one kind and change are one line, with their devices and what they cost."""
    (link,) = comparison_content.build_comparison_view(chain("a", "b")).links
    assert [(fact.name, fact.text.replace(GAP, " ")) for fact in link.findings] == [
        ("Persisting", "Idle gaps, GPU 0: 3 gaps, up to 1.00 GPU-min, then 1 gap, up to 20.0 GPU-s"),
        ("Resolved", "Idle gaps, GPU 1: was 3 gaps, up to 1.00 GPU-min"),
    ]


def test_hardware_that_makes_a_comparison_doubtful_is_said_once() -> None:
    """What stands in the box of doubts is not listed again among what changed; a param of that name is."""
    old, new = chain("a", "b")
    tagged = replace(new[0].run, params=(("gpu_models", "B"),), devices=examples.run("b", model="NVIDIA B200").devices)
    moved = replace(new[0], run=tagged), replace(new[1], run=tagged)
    (link,) = comparison_content.build_comparison_view([old, moved]).links
    assert [doubt.partition(":")[0] for doubt in link.doubts] == ["GPU models"]
    assert [fact.name for fact in link.changes] == ["param gpu_models"]


def test_a_pair_needs_no_overview_and_a_chain_has_one() -> None:
    """Three steps, or a repeated one, are shown side by side; every link is told."""
    assert comparison_content.build_comparison_view(chain("a", "b")).steps is None
    three = comparison_content.build_comparison_view(chain("a", "b", "c"))
    assert three.steps is not None
    assert [row.head.text for row in three.steps.rows] == ["a", "b", "c"]
    assert [link.label for link in three.links] == ["a to b", "b to c"]


def test_repetitions_stand_under_their_step() -> None:
    """A step of two runs shows both."""
    runs = [*chain("one", "two", step="slow"), *chain("c")]
    view = comparison_content.build_comparison_view(runs)
    assert view.steps is not None
    assert [row.head.text for row in view.steps.rows] == ["slow (2 runs)", "- one", "- two", "c"]
    assert view.steps.note
    assert view.groups is not None
    assert [row.head.text for row in view.groups.rows] == ["slow", "c"]


def test_single_runs_are_a_caution() -> None:
    """That a pair need not repeat is said in one place, and nothing is called better or worse."""
    words = text(comparison_content.build_comparison_view(chain("a", "b", "c")))
    assert words.count("Repeat every step before you rely on it.") == 1
    assert "better" not in words
    assert "worse" not in words


def test_steps_held_back_by_one_reason_are_told_together() -> None:
    """Neither steps that are too short nor those of too little steady state each fill a line of their own."""
    brief = [examples.pair(examples.run(f"b/{k}", seconds=15, work=None)) for k in (1, 2, 3)]
    short = [short_of_steady(f"c/{k}") for k in (1, 2)]
    view = comparison_content.build_comparison_view([busy("a", 0.6), busy("b", 0.6), *brief, *short, busy("d", 0.6)])
    since = "there is not enough data to say whether GPU utilisation changed since a."
    brief_why = "Less than 20 s was recorded, which is too short to compare."
    short_why = "A run counts from 20 s of steady state on: run it again, and longer."
    assert [(fact.name, fact.text.replace(GAP, " ")) for fact in view.since_first] == [
        ("Not enough data", f"b/1 to /3: {since} {brief_why}"),
        ("Not enough data", f"c/1 to /2: {since} {short_why}"),
    ]
    assert "Under 20 s was recorded of b/1 to /3." in text(view).replace(GAP, " ")


def test_kinds_of_gpu_are_those_that_hold_the_last_step() -> None:
    """Not the peaks of steps that nobody runs any more."""
    recorded, found = busy("b", 0.6)
    small = tuple(replace(gpu, memory_peak_bytes=2**30) for gpu in found.statistics)
    words = text(
        comparison_content.build_comparison_view(
            [busy("a", 0.6), (recorded, replace(found, statistics=small)), busy("c", 0.6)]
        )
    )
    assert words.count("left free.") == 1
    assert words.count("the table does not know the memory.") == 1


def test_work_that_is_not_given_is_asked_for() -> None:
    """Shares alone can mislead, and the text says so."""
    assert "Pass the work done with --work" in text(
        comparison_content.build_comparison_view(chain("a", "b", work=None))
    )


def test_names_from_outside_cannot_steer_the_terminal() -> None:
    """A hostile name is printed without its escape codes, and the JSON holds it as it is."""
    runs = chain(HOSTILE, "b")
    printed = terminal_comparison.render(comparison_content.build_comparison_view(runs), 80)
    assert "\x1b" not in printed
    assert "\x07" not in printed
    document = json.loads(comparison_json.render(compare([build_sampled_run(*pair) for pair in runs])))
    assert document["steps"][0]["label"] == HOSTILE


def test_colour_is_only_given_when_asked() -> None:
    """Headings carry escape codes on a terminal only."""
    view = comparison_content.build_comparison_view(chain("a", "b"))
    assert "\x1b[1m" in terminal_comparison.render(view, colour=True)
    assert "\x1b" not in terminal_comparison.render(view)


def brief(name: str, seconds: int) -> examples.Pair:
    """Return a recording that is too short to count."""
    info = examples.run(name, seconds=seconds)
    return examples.recording(info), examples.analysis(info)


def test_what_was_recorded_for_too_short_is_not_said_to_be_absent() -> None:
    """Utilisation of 14 s stands in the log; it is too short to judge, and how short is said below."""
    runs = [busy("a", 0.6), busy("b", 0.9), brief("short", 14)]
    view = comparison_content.build_comparison_view(runs)
    assert view.groups is not None
    assert [row.cells[1].text for row in view.groups.rows][2] == "too short to judge"
    assert "longest run: short (14 s); a run counts from 20 s on." in text(view)
    measured = [build_sampled_run(*each) for each in runs]
    found = json.loads(comparison_json.render(compare(measured)))["groups"]
    assert [each["brief"] for each in found] == [
        None,
        None,
        {"run": "short", "seconds": 14.0, "least": 20.0, "stopped": False},
    ]


def test_many_that_are_too_short_are_counted_together() -> None:
    """Their names as a list of names, with the least and the most of their lengths."""
    runs = [busy("a", 0.6), *(brief(f"short/{place}", 10 + place) for place in range(1, 7))]
    view = comparison_content.build_comparison_view(runs)
    assert "longest run: short/1 to /6 (11 s to 16 s); a run counts from 20 s on." in text(view)


def test_charts_tell_too_short_from_absent() -> None:
    """A run too short for an interval has its dot; one without utilisation has none and says so."""
    absent = sampled("absent", power=[300.0] * 900)
    measured = [*(build_sampled_run(*each) for each in (busy("a", 0.6), busy("b", 0.9), brief("short", 14))), absent]
    comparison = compare(measured)
    for study in (None, build_study(comparison, [Factor(kind="param", key="kind")])):
        (chart,) = step_charts.build_step_charts(comparison, study)
        short, none = chart.rows[2:]
        assert short.text.replace(GAP, " ") == "90.0%, too short to judge"
        assert short.interval is None
        assert [dot.value for dot in short.runs] == pytest.approx([0.9])
        assert (none.text, none.value, none.runs) == ("not recorded", None, ())


def test_a_repetition_that_is_too_short_is_marked_and_named() -> None:
    """A mean over the two that are long enough; the third is in the chart as a run that the mean leaves out."""
    info = examples.run("short", seconds=44, step="s")
    runs = [busy("s1", 0.6), busy("s2", 0.8), (examples.recording(info), examples.analysis(info)), busy("b", 0.9)]
    named = [
        replace(one, analysis=replace(one.analysis, run=replace(one.analysis.run, step=step)))
        for one, step in zip((build_sampled_run(*each) for each in runs), ("s", "s", "s", "b"), strict=True)
    ]
    comparison = compare(named)
    for study in (None, build_study(comparison, [Factor(kind="param", key="kind")])):
        (chart,) = step_charts.build_step_charts(comparison, study)
        row = chart.rows[0]
        assert row.value == pytest.approx(0.7, abs=0.01)
        assert [(dot.run, dot.counted) for dot in row.runs] == [("s1", True), ("s2", True), ("short", False)]
        left_out = "short (90.0% over 45 s)"
        assert row.each_run.replace(GAP, " ").endswith(f"%; left out: {left_out}")
        assert f"Cross: a run that the mean leaves out, {left_out}." in step_charts.describe_marks([chart]).replace(
            GAP, " "
        )


def test_what_repetitions_have_in_common_is_told_once() -> None:
    """Three runs of the last step, two with gaps: one entry, with a mean over the three and the worst; 0.02 GPU-h."""
    gaps = [(examples.idle_gap("gpu:0", 100, 100 + 72 * size),) if size else () for size in (0, 1, 2, 0)]
    runs = [
        examples.pair(examples.run(name, work=WORK, step=step), found)
        for name, step, found in zip("abcd", ("one", "two", "two", "two"), gaps, strict=True)
    ]
    view = comparison_content.build_comparison_view(runs)
    told = [fact.text.replace(GAP, " ") for fact in view.advice if fact.name != "Steps"]
    (entry,) = told
    assert entry.startswith("Idle gaps, GPU 0, in 2 of 3 runs: up to 1.20 GPU-min a run, a mean over 3 runs, and in ")
    assert entry.endswith("the worst up to 2.40 GPU-min (12% of the run).")
    (link,) = view.links
    assert "2 findings in 2 runs, up to 1.20 GPU-min a run" in link.findings[0].text.replace(GAP, " ")


def test_an_interval_narrower_than_the_figure_is_not_shown() -> None:
    """From +13.8 to +13.8 GiB says nothing."""
    memory = figure_formats.choose_format("gpu_memory_used_bytes", None)
    (link,) = compare([build_sampled_run(*busy(name, 0.6, name[0])) for name in ("a1", "a2", "b1", "b2")]).deltas[:1]
    wide, narrow = (
        replace(link, interval=(13.8 * 2**30 - width, 13.8 * 2**30 + width)) for width in (2.0**28, 2.0**10)
    )
    assert difference_wording.format_interval(wide, memory) == "+13.6 to +14.1" + GAP + "GiB"
    assert not difference_wording.format_interval(narrow, memory)


def test_columns_that_do_not_fit_follow_below() -> None:
    """A wide table is continued where nothing may be left out, and cut where it may."""
    names = tuple(f"column {place}" for place in range(9))
    table = Table(
        columns=("", *names),
        numeric=(True,) * len(names),
        rows=(Row(head=Cell(text="row"), cells=tuple(Cell(text="0.123456") for _ in names)),),
    )
    page = Page(width=40, ascii=False)
    whole, cut = (" ".join(line.text for line in grid_lines(table, page, whole=every)) for every in (True, False))
    assert (whole.count("0.123456"), cut.count("0.123456")) == (9, 3)
    assert all(len(line.text) <= 40 for line in grid_lines(table, page, whole=True))


def test_a_share_of_nothing_is_not_shown() -> None:
    """Relative to 0 there is no difference, and none has no share."""
    assert [relative(1.0, 0.0), relative(1.0, None), relative(0.0, 5.0)] == ["", "", ""]
    assert relative(1.0, 4.0) == "+25%"


def test_cost_per_unit_of_work_is_shown_where_prices_are_known() -> None:
    """In the table of a link, of steps and of groups; without prices there is no such column."""
    runs = chain("a", "b", "c")
    measured = [build_sampled_run(*pair, gpu_hour_price=3.0 + 3.0 * (place > 0)) for place, pair in enumerate(runs)]
    view = comparison_content.build_comparison_view(runs, measured)
    rows = {row.head.text: [cell.text for cell in row.cells] for row in view.links[0].figures.rows}
    assert rows["Cost per million steps"][:3] == ["1,000", "2,000", "+1,000"]
    assert view.steps is not None
    assert view.groups is not None
    assert "Cost per million steps" in view.steps.columns
    assert "Cost per million steps" in view.groups.columns
    assert "Cost per" not in text(comparison_content.build_comparison_view(runs))


def test_what_is_left_is_said_of_the_last_step() -> None:
    """Its GPU time and classes lost, and the finding that lost most, of all its GPUs."""
    view = comparison_content.build_comparison_view(chain("a", "b"))
    said = {fact.name: fact.text.replace(GAP, " ") for fact in view.remaining}
    assert said["Still lost"] == "Up to 10% of 20.0 GPU-min in b: all of it idle. In a it was 20%."
    assert said["Largest left"].startswith("Idle gaps, GPU 0: up to ")
    assert "WHAT IS STILL LOST" in terminal_comparison.render(view)
