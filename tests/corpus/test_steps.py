"""Genuine repetitions of one job at five locked clocks: what differs is said to differ, what does not is not."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, permutations

import pytest

from gpureport import analyze, read
from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.steps.sampled_run import SampledRun, build_sampled_run
from gpureport.testing import Verdict
from tests.genuine import CORPUS, needs_corpus

PAIRS = CORPUS / "ab_pairs"
pytestmark = [
    pytest.mark.corpus,
    needs_corpus,
]
CLOCKS = (525, 1065, 1545, 2025, 3105)
LABELLED = {
    "gpu_power_watts": ("avg_power_w", 1.0),
    "gpu_graphics_clock_hertz": ("avg_clock_mhz", 1e6),
    "gpu_utilization_ratio": ("avg_gpu_util_pct", 0.01),
    "gpu_temperature_celsius": ("avg_temp_c", 1.0),
}


def labelled(run: SampledRun, step: str) -> SampledRun:
    """Return a run as one of a step."""
    return replace(run, analysis=replace(run.analysis, run=replace(run.analysis.run, step=step)))


@pytest.fixture(scope="module")
def runs() -> dict[int, list[SampledRun]]:
    """Return three runs at each clock."""
    found: dict[int, list[SampledRun]] = {}
    for clock in CLOCKS:
        for path in sorted(PAIRS.glob(f"clk{clock}_r*.csv")):
            (recording,) = read(path)
            run = labelled(build_sampled_run(recording, analyze(recording)), str(clock))
            found.setdefault(clock, []).append(run)
    return found


def sample_mean(run: SampledRun, metric: str) -> float:
    """Return the plain mean of the rows."""
    summary = run.analysis.statistics[0].metric(metric)
    assert summary is not None
    return summary.sample_mean


def labels() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield what the people who recorded the logs found, by name of the log."""
    with (PAIRS / "LABELS.csv").open(encoding="utf-8", newline="") as file:
        yield from ((row["run_id"], row) for row in csv.DictReader(file))


def test_differences_of_sample_means_are_those_recorded(runs: dict[int, list[SampledRun]]) -> None:
    """Every run against every repetition at the next clock, to the digits given."""
    known = dict(labels())
    for before, after in pairwise(CLOCKS):
        for one in runs[before]:
            for other in runs[after]:
                for metric, (column, unit) in LABELLED.items():
                    sides = [known[run.analysis.run.name.removesuffix("_power")][column] for run in (one, other)]
                    expected = (float(sides[1]) - float(sides[0])) * unit
                    difference = sample_mean(other, metric) - sample_mean(one, metric)
                    assert difference == pytest.approx(expected, abs=1.1e-4 * unit)


def test_power_and_clock_differ_between_every_two_neighbours(runs: dict[int, list[SampledRun]]) -> None:
    """Three runs a step; utilisation, which the clock does not change, shows no difference."""
    comparison = compare([run for clock in CLOCKS for run in runs[clock]])
    for before, after in pairwise(map(str, CLOCKS)):
        found = {delta.metric: delta for delta in comparison.between(before, after)}
        for metric in ("gpu_power_watts", "gpu_graphics_clock_hertz"):
            assert (found[metric].verdict, found[metric].basis) == (Verdict.DIFFERS, "replicates")
        assert found["gpu_utilization_ratio"].verdict is Verdict.NO_CLEAR_CHANGE


@pytest.mark.parametrize("clock", CLOCKS)
def test_repetitions_set_against_each_other_give_no_verdict(runs: dict[int, list[SampledRun]], clock: int) -> None:
    """One against one, and one against the two others."""
    repeated = runs[clock]
    splits = [([one], [other]) for one, other in permutations(repeated, 2)]
    splits += [([one], [run for run in repeated if run is not one]) for one in repeated]
    for before, after in splits:
        sides = [*(labelled(run, "before") for run in before), *(labelled(run, "after") for run in after)]
        said = {delta.verdict for delta in compare(sides).deltas}
        assert said <= {Verdict.NO_CLEAR_CHANGE, Verdict.NOT_ENOUGH_DATA}


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_genuine_run_against_itself_gives_no_verdict(runs: dict[int, list[SampledRun]], clock: int) -> None:
    """Nor does a step of three against the same three."""
    repeated = runs[clock]
    again = [labelled(run, "again") for run in repeated]
    for sides in (*([one, same] for one, same in zip(repeated, again, strict=True)), [*repeated, *again]):
        recorded = [each for each in compare(sides).deltas if each.difference is not None]
        assert {each.verdict for each in recorded} == {Verdict.NO_CLEAR_CHANGE}
        assert all(each.interval is None or each.interval[0] <= 0 <= each.interval[1] for each in recorded)
