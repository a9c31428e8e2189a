"""How repetitions are given, said where the folders of single runs suggest it."""

from dataclasses import replace
from itertools import product

import pytest

from gpureport.data_quality import CLOCK_SET_BACK
from gpureport.report import build
from gpureport.report.formats import html
from gpureport.report.formats.text import markdown, terminal
from gpureport.report.sections.comparison import repetition_hint
from gpureport.report.wording import display
from gpureport.testing import ClockStep, Run, Source
from tests.report import examples


def runs(*locators: str, step: str | None = None) -> list[Run]:
    """Return a run for each log."""
    made = []
    for locator in locators:
        run = examples.run(locator, step=step)
        source = Source(kind="nvidia-smi", locator=locator, sha256="")
        made.append(replace(run, sources=(source,)))
    return made


def test_folders_of_several_runs_are_shown_as_steps() -> None:
    """The folder of the logs, or the one that holds a folder for each run."""
    assert repetition_hint.suggest_by_folder(runs("old/1.csv", "old/2.csv", "new/1.csv", "new/2.csv")) == (
        "The runs lie in 2 folders: if those of one folder repeat a step, add --by folder, so that repetitions count "
        "together."
    )
    above = repetition_hint.suggest_by_folder(runs(*(f"x/{step}/{k}/smi.csv" for step in "abc" for k in (1, 2, 3))))
    assert above.startswith("The runs lie in 3 folders: ")


@pytest.mark.parametrize(
    "locators",
    [
        ["a.csv", "b.csv", "c.csv", "d.csv"],
        ["x/a.csv", "x/b.csv", "x/c.csv", "x/d.csv"],
        ["a/gpu.csv", "b/gpu.csv", "c/gpu.csv"],
        ["a/1.csv", "a/2.csv", "b/1.csv"],
        ["-", "a/1.csv"],
    ],
)
def test_other_folders_suggest_nothing(locators: list[str]) -> None:
    """One folder, none, or one for each run."""
    assert repetition_hint.suggest_by_folder(runs(*locators)) == ""


def test_stores_of_a_tracker_suggest_nothing() -> None:
    """They hold runs of many kinds, whatever folders they lie in."""
    stores = runs("s/mlruns#1", "s/mlruns#2", "t/mlruns#3", "t/mlruns#4")
    tracked = [replace(run, sources=(replace(run.sources[0], kind="mlflow"),)) for run in stores]
    assert repetition_hint.suggest_by_folder(tracked) == ""


def test_labelled_runs_are_steps_already() -> None:
    """Whoever names steps knows how."""
    assert repetition_hint.suggest_repetitions(runs("a/1.csv", "a/2.csv", "b/1.csv", "b/2.csv", step="one")) == ""
    assert repetition_hint.suggest_repetitions(runs("a/1.csv", "a/2.csv", "b/1.csv", "b/2.csv")) != ""


def with_params(*params: dict[str, str]) -> list[Run]:
    """Return a run of a tracker for each set of params."""
    return [
        replace(run, params=tuple(sorted(each.items())))
        for run, each in zip(runs(*(f"mlflow.db#{place}" for place in range(len(params)))), params, strict=True)
    ]


def test_runs_with_equal_params_are_shown_as_repetitions() -> None:
    """Where one param tells which are equal, or two; a seed, or a number, is what repetitions differ by."""
    two = {"num_workers": "2", "lr": "0.1"}
    eight = two | {"num_workers": "8"}
    seeded = [each | {"seed": str(place)} for place, each in enumerate((two, two, eight, eight))]
    numbered = [each | {"trial": str(place)} for place, each in enumerate((two, two, eight, eight))]
    for given in ((two, two, eight, eight), seeded, numbered):
        assert repetition_hint.suggest_repetitions(with_params(*given)) == (
            "Runs with the same num_workers have equal params: if they repeat a step, add --by param:num_workers, so "
            "that repetitions count together."
        )
    groups = [{"a x": left, "b": right} for left in "12" for right in "12"]
    assert "add --by 'param:a x,param:b', so" in repetition_hint.suggest_repetitions(with_params(*groups, *groups))


@pytest.mark.parametrize(
    "params",
    [
        [{"lr": "1"}] * 4,
        [{"lr": value} for value in "1234"],
        [{"lr": "1"}, {"lr": "1"}, {"lr": "2"}],
        [{}, {}, {"lr": "1"}, {"lr": "1"}],
        [dict(zip("abc", values, strict=True)) for values in product("12", repeat=3)] * 2,
    ],
    ids=["all alike", "none alike", "few", "not recorded", "three params"],
)
def test_other_params_suggest_nothing(params: list[dict[str, str]]) -> None:
    """Where they make no groups, or none that one or two of them tell apart."""
    assert repetition_hint.suggest_repetitions(with_params(*params)) == ""


def test_the_hint_is_printed_once() -> None:
    """In the lead, which every format shows; not among the things to do, nor with what the last step loses."""
    named = with_params(*({"workers": workers} for workers in "2288"))
    pairs = [(examples.recording(run), examples.analysis(run, idle=60.0)) for run in named]
    content = build(pairs, title=None, command="", gpu_hour_price=None, version="0")
    hint = repetition_hint.suggest_repetitions(named)
    assert hint in content.verdict.details
    texts = (html.render(content), markdown.render(content), terminal.render(content, 200))
    for text in texts:
        assert text.replace(display.GAP, " ").count("have equal params: if they repeat a step") == 1
    assert not [action for action in content.actions if "epeat" in action.title]


def test_repetition_is_asked_for_where_doubts_fill_the_lead() -> None:
    """The hint then stands in the fold alone, so what to do next still says that each step is one run."""
    back = ClockStep(device="gpu:0", at=0, step_seconds=-7200.0, shift_seconds=7200.0, cause=CLOCK_SET_BACK)
    named = [
        replace(
            run,
            timezone="UTC",
            quality=replace(run.quality, clock_steps=(back,)),
            devices=tuple(replace(gpu, uuid=f"GPU-{gpu.index}") for gpu in run.devices),
        )
        for run in with_params(*({"workers": workers} for workers in "2288"))
    ]
    pairs = [(examples.recording(run), examples.analysis(run, idle=60.0)) for run in named]
    content = build(pairs, title=None, command="", gpu_hour_price=2.0, version="0")
    hint = repetition_hint.suggest_repetitions(named)
    assert content.verdict.doubts == len(content.verdict.details) - 1 == 2
    assert hint in content.verdict.notes
    assert "Repeat each step" in [action.title for action in content.actions]
