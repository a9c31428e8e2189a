"""How often intervals hold the mean they are for, on processes whose mean is known.

    python -m tests.comparison.coverage [--trials 1000]

Prints the tables of docs/explanation/comparing-runs.md.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gpureport.comparison.statistics.batch_means import batch_means
from gpureport.comparison.statistics.difference_estimate import estimate_between_runs, estimate_within_runs
from gpureport.comparison.statistics.mean_estimate import MeanEstimate, mean_estimate
from gpureport.comparison.statistics.slow_changes import allow_points
from gpureport.comparison.steps.compared_figures import BY_METRIC, POINTS
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.steady_state import settled
from gpureport.comparison.steps.step_figures import TRAINING_RATE
from gpureport.comparison.steps.steps import build_steps
from gpureport.comparison.steps.throughput import Throughput
from gpureport.comparison.verdicts.step_evidence import gather_evidence
from gpureport.testing import Work
from gpureport.work_counting import CountedWork
from tests.comparison.processes import Floats, Process, autoregressive, processes
from tests.comparison.runs import sampled

LENGTHS = (600, 1800, 3600)
IDLE = 5.0
_SECONDS = 1800
SEED = 20_261_121


def estimate(process: Process, seconds: int, rng: np.random.Generator) -> MeanEstimate:
    """Return the mean of one series."""
    values = process.make(seconds, rng)
    return mean_estimate(values, values <= IDLE)


def held(process: Process, seconds: int, trials: int) -> tuple[float, float, float]:
    """Return how often the interval, and one that takes samples for independent, holds the mean; and its half-width."""
    rng = np.random.default_rng([SEED, seconds])
    inside, naive, widths = 0, 0, []
    for _ in range(trials):
        values = process.make(seconds, rng)
        low, high = mean_estimate(values, values <= IDLE).interval(0.95)
        inside += low <= process.mean <= high
        widths.append((high - low) / 2)
        naive += abs(values.mean() - process.mean) <= 1.96 * values.std(ddof=1) / np.sqrt(seconds)
    return inside / trials, naive / trials, float(np.mean(widths))


def single_runs(trials: int) -> Iterator[str]:
    """Yield the table of one run's mean."""
    yield "| process | " + " | ".join(f"{seconds // 60} min" for seconds in LENGTHS) + " | as if independent, 60 min |"
    yield "| --- | " + " | ".join("---" for _ in LENGTHS) + " | --- |"
    for process in processes():
        found = [held(process, seconds, trials) for seconds in LENGTHS]
        cells = [f"{100 * inside:.1f} % (±{width:.1f})" for inside, _, width in found]
        yield f"| {process.name} | " + " | ".join(cells) + f" | {100 * found[-1][1]:.0f} % |"


def pairs(trials: int) -> Iterator[str]:
    """Yield the table of differences of two runs of one process: how often the interval leaves zero out."""
    yield "| process | 10 min | 30 min |"
    yield "| --- | --- | --- |"
    for process in processes():
        cells = []
        for seconds in LENGTHS[:2]:
            rng = np.random.default_rng([SEED, 2, seconds])
            false = sum(
                estimate_within_runs(*(estimate(process, seconds, rng) for _ in range(2))).excludes_zero()
                for _ in range(trials)
            )
            cells.append(f"{100 * false / trials:.1f} %")
        yield f"| {process.name} | " + " | ".join(cells) + " |"


def short_pairs(trials: int) -> Iterator[str]:
    """Yield the same of recordings too short for slow changes, and by their scatter alone; beyond two points."""
    yield "| process | 30 s | 60 s | 120 s | 300 s | scatter alone, 60 s |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for process in processes():
        claims = [claimed_of_short(process, seconds, trials) for seconds in (30, 60, 120, 300)]
        cells = [f"{100 * claimed:.1f} %" for claimed, _ in claims]
        yield f"| {process.name} | " + " | ".join(cells) + f" | {100 * claims[1][1]:.0f} % |"


def claimed_of_short(process: Process, seconds: int, trials: int) -> tuple[float, float]:
    """Return how often two short runs of a process are called different, and how often by their scatter alone.

    What has not settled is cut off, as of any run, which makes the rest of a slowly changing load look calmer.
    """
    rng = np.random.default_rng([SEED, 5, seconds])
    claimed = alone = 0
    for _ in range(trials):
        runs = [_settle(process.make(seconds, rng)) for _ in range(2)]
        sides = [mean_estimate(values, values <= IDLE, 1.0) for values in runs]
        allowance = 100 * allow_points(min(map(len, runs)))
        found = estimate_within_runs(sides[0], sides[1], allowance=allowance)
        large = abs(found.difference) > 100 * POINTS
        claimed += large and found.excludes_zero()
        alone += large and (found.scatter or found).excludes_zero()
    return claimed / trials, alone / trials


def _settle(values: Floats) -> Floats:
    values = np.clip(np.round(values), 0, 100)
    busy = np.flatnonzero(values > IDLE)
    cut = settled(values[busy]) if len(busy) else 0
    return values[busy[cut] :] if cut else values


def training_rates(trials: int) -> Iterator[str]:
    """Yield the table of training rates: how often the interval of a pair holds the true ratio, a tenth more."""
    yield "| rate | training rate |"
    yield "| --- | --- |"
    run = sampled("run", util=np.full(_SECONDS, 90.0))
    for phi in (0.5, 0.9, 0.98):
        rng = np.random.default_rng([SEED, 4, round(phi * 100)])
        inside = 0
        for _ in range(trials):
            base, step = build_steps([_worked(run, phi, rng, rate) for rate in (100.0, 110.0)])
            found = gather_evidence(base, step, BY_METRIC[TRAINING_RATE])
            if found.contrast is None or not found.before:
                raise ValueError(found.reason)
            low, high = (1 + end / found.before for end in found.contrast.interval(0.95))
            inside += low <= 1.1 <= high
        yield f"| AR(1), {phi:g} | {100 * inside / trials:.1f} % |"


def _worked(run: SampledRun, phi: float, rng: np.random.Generator, rate: float) -> SampledRun:
    """Return a run whose rate scatters by 5 % and depends on itself."""
    info = run.analysis.run
    rates = rate * (1 + autoregressive(_SECONDS, phi, 0.05, rng))
    work = CountedWork(times=info.started + np.arange(_SECONDS + 1) * 1_000_000, amounts=rates)
    return replace(
        run,
        analysis=replace(run.analysis, run=replace(info, work=Work(amount=work.amount, unit="samples"))),
        throughput=Throughput(name="rate", unit="samples", width=1.0, start=info.started, rates=rates, work=work),
    )


def repetitions(trials: int, scatters: Sequence[float] = (0.0, 1.0, 2.0, 4.0)) -> Iterator[str]:
    """Yield the table of runs that scatter between each other as well: within one run, and over two, three, five."""
    yield "| scatter between runs, in errors of one | one run | 2 | 3 | 5 |"
    yield "| --- | --- | --- | --- | --- |"
    for scatter in scatters:
        rng = np.random.default_rng([SEED, 3, round(scatter * 10)])
        cells = [_alone(scatter, trials, rng), *(_repeated(scatter, runs, trials * 5, rng) for runs in (2, 3, 5))]
        yield f"| {scatter:g} | " + " | ".join(f"{100 * cell:.1f} %" for cell in cells) + " |"


def _alone(scatter: float, trials: int, rng: np.random.Generator) -> float:
    """Return how often the interval of one run against one holds no difference, by what lies within runs."""
    error = 3.0 * np.sqrt(19 / 1200)
    inside = 0
    for _ in range(trials):
        sides = []
        for _ in range(2):
            values = 80 + rng.normal(0, scatter * error) + autoregressive(1200, 0.9, 3.0, rng)
            sides.append(MeanEstimate(mean=float(values.mean()), between=batch_means(values)))
        inside += not estimate_within_runs(*sides).excludes_zero()
    return inside / trials


def _repeated(scatter: float, runs: int, trials: int, rng: np.random.Generator) -> float:
    inside = 0
    for _ in range(trials):
        sides = rng.normal(0, np.hypot(1.0, scatter), (2, runs)).tolist()
        found = estimate_between_runs(*sides)
        inside += found is not None and not found.excludes_zero()
    return inside / trials


def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    trials = parser.parse_args().trials
    for title, lines in (
        ("One run", single_runs(trials)),
        ("Two runs of one process", pairs(trials)),
        ("Two short runs of one process", short_pairs(trials)),
        ("Training rate, half an hour", training_rates(trials)),
        ("Repetitions", repetitions(trials)),
    ):
        print(f"\n## {title}\n")  # noqa: T201 - a benchmark prints
        for line in lines:
            print(line, flush=True)  # noqa: T201 - as above


if __name__ == "__main__":
    main()
