"""What must hold of every valid recording, whatever is in it: results or errors of the project, and sound shares."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import lru_cache
from math import isfinite
from typing import NoReturn
from xml.etree import ElementTree as ET

from gpureport.analysis import RULES
from gpureport.analysis.cost.cost import calculate_cost
from gpureport.analysis.cost.prices import Prices
from gpureport.checks import policy_evaluation
from gpureport.checks.formats import check_json
from gpureport.checks.gate_verdict import Verdict
from gpureport.checks.policy import Policy
from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.steps.sampled_run import SampledRun, build_sampled_run
from gpureport.comparison.steps.steps import build_steps
from gpureport.metrics import BY_NAME
from gpureport.nightly.history import capture
from gpureport.nightly.site import figure_exports
from gpureport.report import FORMATS, build, render
from gpureport.report.formats.json import analysis_json, comparison_json
from gpureport.testing import Analysis, Recording, analyze
from tests.fuzz.recordings import recording

ONE_IN = {".json": 1, ".md": 1, ".txt": 3, ".svg": 10, ".html": 20, ".png": 200, ".pdf": 200}
"""In which formats one of so many recordings is written: what draws takes ten times as long as all the rest."""
OF_SEVERAL = {**ONE_IN, ".json": 4, ".md": 4, ".txt": 8}
"""The same for reports on two or three recordings, which are long."""
GROUP = 3
"""Recordings that are compared with each other: the numbers from a multiple of it on."""

_ABOUT = 1e-6

_POLICY = Policy().with_limits(
    ("problem", "idle_ratio <= 5 %", "gpu_utilization_ratio p50 >= 80 %", "no thermal_throttle", "duration >= 10 min")
)

Pair = tuple[Recording, Analysis]
Stage = Callable[[int], None]


@lru_cache(GROUP)
def pair(number: int) -> Pair:
    """Return the recording of a number with its analysis."""
    made = recording(number)
    analysis = analyze(made)
    prices = (Prices(), Prices().with_overrides(2.5, None), Prices().with_overrides(2.5, 400.0))[number % 3]
    return made, replace(analysis, cost=calculate_cost(analysis, prices))


@lru_cache(GROUP)
def measured(number: int) -> SampledRun:
    """Return the recording of a number as comparisons take it."""
    return build_sampled_run(*pair(number))


def judged(number: int) -> None:
    """Analyse a recording; every second of a GPU has a class, and shares are shares."""
    made, analysis = pair(number)
    whole = (made.run.ended - made.run.started) / 1e6
    for time in analysis.gpu_time:
        seconds = [amount for _, amount in time.seconds]
        assert min(seconds) >= 0, time
        assert abs(sum(seconds) - whole) <= max(_ABOUT, 1e-12 * whole) * len(seconds), (time, whole)
    wrong = {name: share for name, share in _shares(analysis) if not 0 <= share <= 1 + _ABOUT}
    assert not wrong, wrong
    _strict(analysis_json.render([analysis]))


def _shares(analysis: Analysis) -> Iterator[tuple[str, float]]:
    if analysis.coverage_ratio is not None:
        yield "coverage", analysis.coverage_ratio
    for each in analysis.statistics:
        for summary in each.metrics:
            metric = BY_NAME[summary.metric]
            if metric.unit == "1" and not metric.may_exceed_one:
                figures = (summary.mean, summary.sample_mean, summary.p5, summary.p50, summary.p95, summary.max)
                yield from ((f"{each.device} {summary.metric}", figure) for figure in figures)
            yield from ((f"{summary.metric} below {limit}", share) for limit, share in summary.below)
            if summary.repeated_ratio is not None:
                yield f"{summary.metric} repeated", summary.repeated_ratio


def told(number: int) -> None:
    """Write a recording as a report in every format, those that draw now and then."""
    _written([pair(number)], number, ONE_IN)


def compared(number: int) -> None:
    """Set the two or three recordings of a group side by side, once a group: as JSON, as text and as a report."""
    if number % GROUP != GROUP - 1:
        return
    numbers = range(number - number % 2 - 1, number + 1)
    runs, sampled = [pair(each) for each in numbers], [measured(each) for each in numbers]
    comparison = compare(sampled)
    _strict(comparison_json.render(comparison))
    _strict(analysis_json.render([analysis for _, analysis in runs], tuple(build_steps(sampled))))
    _written(runs, number // GROUP, OF_SEVERAL)


def limited(number: int) -> None:
    """Hold a recording against limits, and keep its figures, as a gate and a night do."""
    run = measured(number)
    kinds = [kind for rule in RULES for kind in rule.kinds]
    checks = policy_evaluation.evaluate_policy(
        _POLICY, policy_evaluation.CheckInput(analyses=(run.analysis,), selected_kinds=kinds, today=date(2026, 3, 14))
    )
    assert all(figure.value is None or isfinite(figure.value) for figure in capture.capture_run("log.csv", run).figures)
    _strict(check_json.render(Verdict(checks=checks)))
    _sound(".prom", figure_exports.render_openmetrics([run], checks).encode())


STAGES: tuple[Stage, ...] = (judged, told, limited, compared)
"""What a recording goes through, each stage with what went before."""


def _written(runs: Sequence[Pair], number: int, one_in: Mapping[str, int]) -> None:
    report = build(runs, title=None, command="gpureport report", gpu_hour_price=None, version="0.1.0")
    for extension in FORMATS:
        if number % one_in[extension] == 0:
            _sound(extension, render(report, extension))


def _sound(extension: str, content: bytes) -> None:
    assert content, extension
    if extension == ".json":
        _strict(content.decode())
    elif extension in {".xml", ".svg"}:
        ET.fromstring(content)  # noqa: S314 - our own
    elif extension == ".prom":
        values = [line.rsplit(" ", 1)[1] for line in content.decode().splitlines() if not line.startswith("#")]
        assert all(isfinite(float(value)) for value in values), values


def _strict(text: str) -> None:
    """Read JSON that holds no number which is none."""
    json.loads(text, parse_constant=_refused)


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} in JSON")
