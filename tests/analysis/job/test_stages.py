"""Figures of each stage of a run."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport import columns
from gpureport.testing import Recording, Stage, analyze, at, recording, steps


def staged(*names: str | None, util: list[float]) -> Recording:
    """Return a recording of one GPU whose rows belong to stages, None for none."""
    made = recording(util=util, every=10.0)
    known = list(dict.fromkeys(name for name in names if name))
    codes = np.array([known.index(name) if name else 0 for name in names])
    column = columns.categories(codes, known, np.array([name is not None for name in names]))
    stages = tuple(
        Stage(name=name, start=at(10.0 * names.index(name)), end=at(10.0 * (len(names) - 1 - names[::-1].index(name))))
        for name in known
    )
    series = made.series.append_column("stage", column)
    return replace(made, run=replace(made.run, stages=stages)).with_series(series)


def test_each_stage_has_its_own_figures() -> None:
    """Means, idle time and time covered are those of the rows a stage recorded."""
    util = [*steps((20, 6), (90, 12))]
    found = staged(*["preprocessing"] * 6, *["training"] * 12, util=util)
    first, second = analyze(found).stages
    assert (first.stage, second.stage) == ("preprocessing", "training")
    means = [stage.statistics[0].metric("gpu_utilization_ratio") for stage in (first, second)]
    assert [mean and mean.mean for mean in means] == pytest.approx([0.2, 0.9])
    assert [stage.statistics[0].observed_seconds for stage in (first, second)] == [60.0, 120.0]
    assert second.statistics[0].idle_seconds == 0.0


def test_a_stage_inside_another_is_none_of_it() -> None:
    """Of a stage that was taken up again the time between is not its own, nor are rows of no stage."""
    names = [*["training"] * 10, *["validation"] * 10, *["training"] * 10, *[None] * 5]
    found = staged(*names, util=[*steps((90, 10), (0, 10), (90, 10), (10, 5))])
    training, validation = analyze(found).stages
    assert training.statistics[0].observed_seconds == 200.0
    assert training.statistics[0].idle_seconds == 0.0
    assert validation.statistics[0].idle_seconds == 100.0


def test_a_run_without_stages_has_none() -> None:
    """Nothing is made up, neither without stages nor without the column."""
    assert analyze(recording(util=[50.0] * 5)).stages == ()
    named = recording(util=[50.0] * 5)
    stage = Stage(name="training", start=at(0), end=at(4))
    assert analyze(replace(named, run=replace(named.run, stages=(stage,)))).stages == ()
