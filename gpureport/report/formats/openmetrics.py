"""The report as OpenMetrics text, for the metric pages of CI servers and for Prometheus.

Values are in base units. What was not recorded has no line: a missing line is never to be read as 0.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpureport.answers import Outcome
from gpureport.findings import Severity
from gpureport.report.model.report_content import Report
from gpureport.report.wording.display import GAP

_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", GAP: " "})
_DIGITS = 9
_GPU_FIGURES = {
    "Utilisation mean": ("utilization_ratio", "Mean GPU utilisation, weighted with time."),
    "Use up to 5%": ("idle_ratio", "Share of the sampled time at a utilisation of 5% or less."),
    "SM clock median": ("sm_clock_hertz", "Median SM clock."),
    "Temperature max": ("temperature_max_celsius", "Highest temperature."),
    "Power mean": ("power_watts", "Mean power, weighted with time."),
    "Energy": ("energy_joules", "Power integrated over the time of samples."),
    "Energy counted": ("energy_counted_joules", "Energy as the driver counted it."),
    "Peak memory": ("memory_peak_bytes", "Most GPU memory in use."),
    "Memory free at peak, of installed": ("memory_free_at_peak_ratio", "Share of GPU memory that was never used."),
}
"""Name without its prefix and meaning of each column of the table of GPUs; its last word is its unit."""


@dataclass(frozen=True, slots=True)
class _Family:
    """A metric: its name, its unit as OpenMetrics has it (part of the name), and what it says."""

    name: str
    unit: str
    about: str


@dataclass(frozen=True, slots=True)
class _Sample:
    """One value with its labels; None is not recorded."""

    labels: tuple[tuple[str, str], ...]
    value: float | None


def render(report: Report) -> str:
    """Return shares and time by class, findings, answers, and the figures of steps with their intervals."""
    families = (
        *_gpu_time(report),
        *_findings(report),
        *_answers(report),
        *_gpus(report),
        *_figures(report),
    )
    lines = [line for family, samples in families for line in _lines(family, samples)]
    return "\n".join([*lines, "# EOF"]) + "\n"


_MEAN = "Mean of a figure over what had settled of a step, in the unit its name says; shares as ratios."
_Families = Iterator[tuple[_Family, list[_Sample]]]


def _gpu_time(report: Report) -> _Families:
    parts = [
        ((("of", bar.label), ("class", part.key)), part.ratio, part.seconds)
        for bar in report.gpu_time
        for part in bar.parts
    ]
    share = _Family("gpureport_gpu_time_ratio", "ratio", "Share of GPU time by class; the classes of one add up to 1.")
    yield share, [_Sample(labels, ratio) for labels, ratio, _ in parts]
    spent = _Family("gpureport_gpu_time_seconds", "seconds", "GPU time by class.")
    free = [((("of", bar.label), ("class", "no_job")), bar.no_job_seconds) for bar in report.gpu_time if bar.no_job]
    yield spent, [_Sample(labels, seconds) for labels, seconds in [*((one, last) for one, _, last in parts), *free]]


def _findings(report: Report) -> _Families:
    runs = [run.label for run in report.timeline]
    counts = Counter((card.run_index, card.severity) for card in report.findings)
    each = [
        _Sample((("run", run), ("severity", severity.value)), counts[place, severity.value])
        for place, run in enumerate(runs)
        for severity in Severity
    ]
    yield _Family("gpureport_findings", "", "Findings of a run; see gpureport_answers for what was not judged."), each
    lost = [
        _Sample(
            (
                ("run", runs[card.run_index]),
                ("id", card.id),
                ("kind", card.kind),
                ("severity", card.severity),
                ("title", card.title),
            ),
            card.lost_seconds,
        )
        for card in report.findings
    ]
    about = "The most GPU time that removing the cause of a finding could give back; not to be added up."
    yield _Family("gpureport_finding_lost_seconds", "seconds", about), lost


def _answers(report: Report) -> _Families:
    samples = []
    for run in report.answers:
        counts = Counter(line.outcome for line in run.lines)
        samples += [
            _Sample((("run", run.label), ("outcome", outcome.value)), counts[outcome.value]) for outcome in Outcome
        ]
    yield _Family("gpureport_answers", "", "Kinds that were asked about, by what became of them."), samples


def _gpus(report: Report) -> _Families:
    names = {name for run in report.gpus for name in run.table.columns[1:]}
    for title, (name, about) in _GPU_FIGURES.items():
        if title in names:
            unit = name.rpartition("_")[2]
            yield _Family(f"gpureport_gpu_{name}", unit, about), list(_column(report, title))


def _column(report: Report, title: str) -> Iterator[_Sample]:
    for run in report.gpus:
        place = run.table.columns.index(title) - 1 if title in run.table.columns else None
        for row in run.table.rows if place is not None else ():
            yield _Sample((("run", run.label), ("gpu", row.head.text)), row.cells[place or 0].value)


def _figures(report: Report) -> _Families:
    charts = report.comparison.charts if report.comparison else ()
    rows = [((("step", row.label), ("figure", chart.title)), row) for chart in charts for row in chart.rows]
    means = [_Sample(labels, row.value) for labels, row in rows]
    yield _Family("gpureport_step_figure", "", _MEAN), means
    for place, end in enumerate(("low", "high")):
        ends = [_Sample(labels, row.interval[place] if row.interval else None) for labels, row in rows]
        yield _Family(f"gpureport_step_figure_{end}", "", f"The {end} end of its 95% interval."), ends


def _lines(family: _Family, samples: Iterable[_Sample]) -> Iterator[str]:
    """Yield a family with its values; a family without any is left out."""
    written: Counter[tuple[tuple[str, str], ...]] = Counter()
    values = []
    for sample in samples:
        if sample.value is None or not math.isfinite(sample.value):
            continue
        written[sample.labels] += 1
        # names that differ only in characters that were removed must not become one series
        repeat = (("repeat", str(written[sample.labels])),) if written[sample.labels] > 1 else ()
        labels = ",".join(f'{name}="{text.translate(_ESCAPED)}"' for name, text in (*sample.labels, *repeat))
        values.append(f"{family.name}{{{labels}}} {round(float(sample.value), _DIGITS):.15g}")
    if values:
        yield f"# TYPE {family.name} gauge"
        if family.unit:
            yield f"# UNIT {family.name} {family.unit}"
        yield f"# HELP {family.name} {family.about}"
        yield from values
