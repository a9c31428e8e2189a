"""Groups by settings: the best of them and its margin, effects of settings, and what a design does not tell."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.study.factors import Factor, group_runs
from gpureport.comparison.study.study import Study, build_study
from gpureport.report.formats.json import comparison_json
from gpureport.report.sections.comparison import step_charts
from gpureport.report.sections.study.study_content import build_study_sections
from gpureport.report.sections.study.study_headline import describe_study
from gpureport.report.wording.display import GAP
from gpureport.testing import Verdict
from tests.comparison.runs import compared, level, sampled

BATCH, WORKERS = Factor(kind="param", key="batch"), Factor(kind="param", key="workers")
SECONDS = 700


def run(
    rate: float | None,
    seed: int,
    accuracy: float = 0.0,
    unit: str = "samples",
    seconds: int = SECONDS,
    **params: str,
) -> SampledRun:
    """Return a run of eleven minutes that logs how fast it works, with 1% between its points.

    Args:
        rate: samples a second; None for a run that logs nothing.
        seed: of its scatter.
        accuracy: that it validates at, in the end as before; 0 for none.
        unit: of its work.
        seconds: that it lasts, where that is no eleven minutes.
        params: what it was configured with; `batch` names its group.
    """
    scatter = np.random.default_rng(seed).normal(0, 0.01, SECONDS)
    stamps = range(5, seconds, 5)
    training = [(float(at), at, f"{unit}_per_second", rate * (1 + scatter[at])) for at in stamps] if rate else []
    training += [(float(at), at, "val_accuracy", accuracy + scatter[at] / 10) for at in stamps if accuracy]
    group = f"batch={params['batch']}"
    util = level(60 if rate is None else 80, seconds, seed)
    return sampled(f"r{seed}", step=group, params=sorted(params.items()), training=training, util=util, power=200.0)


def study(runs: Sequence[SampledRun], *by: Factor) -> Study:
    """Return the study of runs."""
    return build_study(compared(*runs), by or (BATCH,))


def said(runs: Sequence[SampledRun], *by: Factor) -> str:
    """Return everything that is said of a study."""
    comparison = compared(*runs)
    words = []
    for section in build_study_sections(comparison, build_study(comparison, by or (BATCH,))):
        words += [f"{fact.name}: {fact.text}" for fact in section.facts]
        if section.table:
            words += [" | ".join([row.head.text, *(cell.text for cell in row.cells)]) for row in section.table.rows]
            words.append(section.table.note)
    return "\n".join(words).replace(GAP, " ")


def repeated(*rates: tuple[str, float], between: float = 0.01) -> list[SampledRun]:
    """Return three runs of each batch, with some scatter between them."""
    spread = (-between, 0.0, between)
    return [
        run(rate * (1 + spread[place]), 10 * at + place, batch=batch)
        for at, (batch, rate) in enumerate(rates)
        for place in range(3)
    ]


def test_a_short_run_may_come_first() -> None:
    """A group of one run of 40 s is not passed over for the next, and nothing is claimed of it."""
    found = study([*repeated(("8", 100), ("16", 200)), run(240, 9, seconds=40, batch="32")])
    assert found.best_by_speed is not None
    assert (found.best_by_speed.label, found.best_by_speed.unknown) == ("batch=32", ())
    assert found.best_by_speed.verdict is not Verdict.BETTER


def test_the_best_stands_clear_of_all_others() -> None:
    """A fifth faster than the next, by repetitions; so much less GPU time."""
    found = study(repeated(("8", 100), ("16", 200), ("32", 240)))
    speed, cost = found.best_by_speed, found.best_by_cost
    assert speed is not None
    assert cost is not None
    assert (speed.label, speed.next, speed.verdict, speed.rivals, speed.tested) == (
        "batch=32",
        "batch=16",
        "better",
        (),
        2,
    )
    assert speed.change == pytest.approx(0.2, abs=0.01)
    assert (cost.label, cost.verdict, cost.metric) == ("batch=32", Verdict.BETTER, "gpu_seconds_per_1000_work")
    assert cost.change == pytest.approx(1 / 1.2 - 1, abs=0.01)
    assert "Fastest: batch=32: 20% (" in said(repeated(("8", 100), ("16", 200), ("32", 240)))


def test_no_clear_best_names_the_groups_beside_it() -> None:
    """Two groups whose repetitions overlap; the third is far behind and no rival."""
    runs = repeated(("8", 100), ("16", 200), ("32", 202), between=0.03)
    found = study(runs).best_by_speed
    assert found is not None
    assert (found.verdict, found.rivals) == (Verdict.NO_CLEAR_CHANGE, ("batch=16",))
    text = said(runs)
    assert "Fastest: No clear best. batch=32 comes first: " in text
    assert "May be as good: batch=16." in text
    assert re.search(r"\(from [\d.]+% worse to [\d.]+% better\) faster in training than the next", text)


def test_single_runs_confirm_nothing() -> None:
    """The best of single runs is named with its margin, unconfirmed; no effect is called better or worse."""
    runs = [run(rate, seed, batch=batch) for seed, (batch, rate) in enumerate((("8", 100.0), ("16", 150.0)))]
    found = study(runs)
    assert found.best_by_speed is not None
    assert found.best_by_speed.verdict is Verdict.UNCONFIRMED
    (setting,) = found.effects[0].settings
    assert (found.effects[0].degrees, setting.levels[1].interval) == (0, None)
    assert setting.levels[1].verdict is Verdict.UNCONFIRMED
    assert setting.levels[1].change == pytest.approx(0.5, abs=0.01)
    text = said(runs)
    assert "unconfirmed, for not every group is repeated." in text
    assert "No interval: every run is needed to tell one effect from another." in text


def test_short_single_runs_tell_no_small_effect() -> None:
    """A fifth more within 40 s may be a slow change of the load; three times as much is not, and stays unconfirmed."""
    runs = [
        run(rate, seed, seconds=40, batch=batch)
        for seed, (batch, rate) in enumerate((("8", 100.0), ("16", 120.0), ("32", 300.0)))
    ]
    for effects in study(runs).effects:
        assert [level.verdict for level in effects.settings[0].levels] == [
            None,
            Verdict.NOT_ENOUGH_DATA,
            Verdict.UNCONFIRMED,
        ]
    assert "Unconfirmed: more than noise commonly explains" in said(runs)


def test_several_runs_without_repetition_are_not_called_one_run_each() -> None:
    """Two runs of four workers, of different batches, against one of two: no run is left to tell the scatter."""
    values = ((100.0, "8", "2"), (300.0, "8", "4"), (600.0, "16", "4"))
    runs = [run(rate, seed, batch=batch, workers=workers) for seed, (rate, batch, workers) in enumerate(values)]
    text = said(runs, BATCH, WORKERS)
    assert "workers=4 against 2 | 2 | +200% |  | unconfirmed\n" in text


def test_the_least_gpu_time_is_not_called_cheap_without_a_price() -> None:
    """A faster GPU may cost more an hour: between kinds of GPU the least time says nothing of money."""
    text = said(repeated(("8", 100), ("16", 200)), Factor(kind="gpu", key=""))
    assert "Cheapest" not in text
    assert "Least GPU time: batch=16: " in text
    assert "Not known: Which GPU is cheapest: state the price of each under [prices]." in text
    assert "Which GPU is cheapest" not in said(repeated(("8", 100), ("16", 200)))


def test_a_group_far_behind_is_no_rival_of_the_best() -> None:
    """Two groups overlap; a single run at half their rate is named as worse, unconfirmed, not as good as they."""
    runs = [*repeated(("16", 200), ("32", 202), between=0.03), run(60, 99, batch="8")]
    found = study(runs).best_by_speed
    assert found is not None
    assert (found.rivals, found.unconfirmed) == (("batch=16", "batch=8"), ("batch=8",))
    assert "May be as good: batch=16. Worse, but unconfirmed: batch=8." in said(runs)


def test_nothing_more_than_noise_between_single_runs_is_no_clear_best() -> None:
    """A difference of 1% is what repeating a run commonly changes."""
    runs = [run(rate, seed, batch=batch) for seed, (batch, rate) in enumerate((("8", 100.0), ("16", 101.0)))]
    found = study(runs)
    assert found.best_by_speed is not None
    assert found.best_by_speed.verdict is Verdict.NO_CLEAR_CHANGE
    assert found.effects[0].settings[0].levels[1].verdict is Verdict.NO_CLEAR_CHANGE


def test_settings_that_changed_together_get_no_effect() -> None:
    """The learning rate goes with the batch; each is named at the other."""
    runs = [
        run(100.0 * (1 + at) + place, 10 * at + place, batch=str(8 << at), lr=f"0.{at + 1}")
        for at in (0, 1)
        for place in (0, 1)
    ]
    found = study(runs)
    settings = {setting.factor.key: setting for setting in found.effects[0].settings}
    assert [factor.key for factor in settings["batch"].confounded_with] == ["lr"]
    assert [factor.key for factor in settings["lr"].confounded_with] == ["batch"]
    assert settings["batch"].levels[1].change is None
    text = said(runs)
    assert "batch | 4 |  |  | changed together with lr" in text
    assert "Also varied: lr; the groups differ in this too." in text


def test_what_else_varied_is_held_equal() -> None:
    """Workers vary within groups: they have an effect of their own, and do not blur that of the batch."""
    rates = {("8", "2"): 100, ("8", "8"): 150, ("16", "2"): 120, ("16", "8"): 180}
    runs = [
        run(rate * (1 + 0.01 * place), 100 * at + place, batch=batch, workers=workers, random_seed=str(place))
        for at, ((batch, workers), rate) in enumerate(rates.items())
        for place in range(3)
    ]
    found = study(runs)
    batch, workers = found.effects[0].settings
    assert (batch.factor, workers.factor) == (BATCH, WORKERS)
    assert batch.levels[1].change == pytest.approx(0.2, abs=0.01)
    assert workers.levels[1].change == pytest.approx(0.5, abs=0.01)
    assert {level.verdict for level in (batch.levels[1], workers.levels[1])} == {Verdict.BETTER}
    assert [factor.key for factor in found.varied.repetitions] == ["random_seed"]
    assert "Also varied: workers; the groups differ in this too." in said(runs)


def test_an_effect_that_depends_on_another_is_said_to() -> None:
    """More workers help the large batch alone."""
    rates = {("8", "2"): 100, ("8", "8"): 100, ("16", "2"): 100, ("16", "8"): 200}
    runs = [
        run(rate * (1 + 0.01 * place), 100 * at + place, batch=batch, workers=workers)
        for at, ((batch, workers), rate) in enumerate(rates.items())
        for place in range(3)
    ]
    assert study(runs).effects[0].additive is False
    assert "What one setting does depends on another: go by the groups" in said(runs)


def test_a_name_for_every_run_is_no_setting() -> None:
    """A folder that differs in every run is left out; a number that does, where groups are not repeated, is not."""
    runs = [run(100.0 + seed, seed, batch=str(8 << (seed % 2)), out=f"runs/{seed}") for seed in range(4)]
    assert [factor.key for factor in study(runs).varied.names] == ["out"]
    single = [run(100.0 + seed, seed, batch=str(8 << seed), lr=f"{seed}.5") for seed in range(3)]
    assert [factor.key for factor in study(single).varied.factors] == ["batch", "lr"]


def test_without_work_utilisation_is_studied() -> None:
    """No best group by cost or speed; effects are in points."""
    runs = [run(None, seed, batch=batch) for seed, batch in enumerate(("8", "8", "16", "16"))]
    found = study(runs)
    assert (found.best_by_cost, found.best_by_speed) == (None, None)
    (effects,) = found.effects
    assert (effects.metric, effects.relative) == ("gpu_utilization_ratio", False)
    assert " points" in said(runs)


def test_a_best_that_trains_worse_is_named_with_both_values() -> None:
    """The fastest batch is 18 points less accurate than the slowest: the head warns, and the JSON names the metric."""
    settings = (("8", 100.0, 0.79), ("16", 200.0, 0.78), ("32", 240.0, 0.61))
    runs = [
        run(rate * (1 + place / 100), 10 * at + place, accuracy, batch=batch)
        for at, (batch, rate, accuracy) in enumerate(settings)
        for place in range(3)
    ]
    found = study(runs)
    assert found.best_by_cost is not None
    (lower,) = found.best_by_cost.lower_quality
    assert (lower.name, lower.base, lower.verdict) == ("val_accuracy", "batch=8", Verdict.WORSE)
    sentence, _ = describe_study(found, compared(*runs))
    assert sentence == "batch 32 is lowest in GPU time, but val_accuracy is 0.61, not 0.79."
    document = json.loads(comparison_json.render(compared(*runs), (BATCH,)))
    (entry,) = document["study"]["best"]["cost"]["lower_quality"]
    assert (entry["name"], entry["group"], round(entry["own"], 2)) == ("val_accuracy", "batch=8", 0.61)


def test_equal_quality_is_no_warning() -> None:
    """Accuracies that agree but for their scatter."""
    runs = [run(100.0 * (1 + at), 10 * at + place, 0.79, batch=str(8 << at)) for at in (0, 1) for place in range(3)]
    found = study(runs).best_by_cost
    assert found is not None
    assert found.lower_quality == ()


def test_a_panel_keeps_a_place_for_a_setting_without_a_run() -> None:
    """Two frameworks, three batches, one pair never run; all bars on the scale of the longest."""
    torch, jax = {"8": 100.0, "16": 200.0, "32": 250.0}, {"8": 130.0, "32": 300.0}
    rates = {(name, batch): rate for name, found in (("torch", torch), ("jax", jax)) for batch, rate in found.items()}
    by = (Factor(kind="param", key="framework"), BATCH)
    made = [
        run(rate, seed, framework=framework, batch=batch)
        for seed, ((framework, batch), rate) in enumerate(rates.items())
    ]
    runs = [
        replace(made[place], analysis=replace(one.analysis, run=replace(one.analysis.run, step=label)))
        for place, label in group_runs([one.analysis.run for one in made], by)
        for one in (made[place],)
    ]
    comparison = compared(*runs)
    panels = step_charts.build_step_charts(comparison, build_study(comparison, by))
    assert [panel.title for panel in panels] == [
        "Thousand samples per GPU-hour: framework=torch",
        "Thousand samples per GPU-hour: framework=jax",
    ]
    assert [[row.label for row in panel.rows] for panel in panels] == [["batch=8", "batch=16", "batch=32"]] * 2
    assert [row.text for row in panels[1].rows][1] == "no run"
    assert len({panel.end for panel in panels}) == 1
    assert panels[0].end == pytest.approx(300 * 3.6, rel=0.05)


def test_many_settings_that_changed_together_are_told_apart_from_none_in_time() -> None:
    """Sixty params that all go with the batch: each is named at the others, the first six of them."""
    runs = []
    for one in repeated(("8", 100.0), ("16", 200.0)):
        info = one.analysis.run
        more = [(f"p{number:02}", f"{number} with {info.step}") for number in range(60)]
        runs.append(replace(one, analysis=replace(one.analysis, run=replace(info, params=(*info.params, *more)))))
    assert "changed together with p00, p01, p02, p03, p04, p05 and 54 more" in said(runs)


def test_work_in_two_units_has_no_best() -> None:
    """Samples against tokens: nothing is cheapest, and the report says why."""
    runs = [run(100.0, seed, batch="8") for seed in range(2)]
    tokens = [run(200.0, seed, unit="tokens", batch="16") for seed in (2, 3)]
    found = study([*runs, *tokens])
    assert (found.best_by_cost, found.best_by_speed, [each.metric for each in found.effects]) == (
        None,
        None,
        ["gpu_utilization_ratio"],
    )
    assert "Fewer than two groups have" in said([*runs, *tokens])
