"""A PCIe link that runs below what card and slot allow."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.thresholds import pragmatic, vendor
from gpureport.columns import BoolArray
from gpureport.findings import Evidence, Finding, NotJudged, Severity, Threshold

_KIND = "pcie_degraded"
_GENERATION = ("pcie_link_generation", "pcie_link_generation_max")
_WIDTH = ("pcie_link_width", "pcie_link_width_max")
_FRACTIONS = {0.5: "half", 0.25: "a quarter", 0.125: "an eighth"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """What a GPU's link has at best while busy, and what it could have; NaN where not recorded."""

    generation: float
    generation_max: float
    width: float
    width_max: float
    samples: int

    @property
    def ratio(self) -> float:
        """Data rate, of the highest: lanes, and a doubling with every generation."""
        lanes = self.width / self.width_max if self.width < self.width_max else 1.0
        steps = self.generation_max - self.generation if self.generation < self.generation_max else 0.0
        return float(lanes / 2**steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class PcieDegraded(ClassRule):
    """A PCIe generation or width that stays below its maximum in every busy sample, of which there are at least five.

    A link slows down when the GPU rests, by design: only samples at a utilisation above 20% count, and the best of
    them. The maximum is what the driver says card and slot allow together; in virtual machines it does not always know
    the slot, so half of the data rate is information, less a warning, an eighth a problem.
    """

    name = _KIND
    requires = ((UTILISATION,), (_GENERATION[0], _WIDTH[0]), (_GENERATION[1], _WIDTH[1]))

    busy: Threshold = vendor(0.2, "1", "NVML: the link generation may be reduced when the GPU is not in use")
    fewest: Threshold = pragmatic(5.0, "rows", "a link takes a moment to speed up")
    common: Threshold = pragmatic(
        0.5, "1", "of the data rate; cloud instances with T4 and L4 are built with half the lanes"
    )
    problem: Threshold = pragmatic(0.125, "1", "of the data rate; what is left slows most jobs that load data")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding a GPU."""
        for device, series in context.gpus().items():
            if not series.is_recorded(UTILISATION):
                yield missing_metrics.not_recorded(_KIND, device, UTILISATION)
                continue
            if not any(series.is_recorded(now) and series.is_recorded(most) for now, most in (_GENERATION, _WIDTH)):
                yield missing_metrics.not_recorded(_KIND, device, *_GENERATION, *_WIDTH)
                continue
            busy = series.values(UTILISATION) > self.busy.value
            link = _read_link(series, busy)
            if link.samples < self.fewest.value:
                yield _report_resting(device, link.samples)
            elif link.ratio < 1:
                yield self._build_finding(device, link)

    def _build_finding(self, device: str, link: _Link) -> Finding:
        is_mild = link.ratio >= self.common.value
        return Finding(
            kind=_KIND,
            severity=(
                Severity.INFO if is_mild else Severity.PROBLEM if link.ratio <= self.problem.value else Severity.WARNING
            ),
            confidence=certainty.confidence_by_readings(link.samples),
            devices=(device,),
            intervals=(),
            evidence=(
                *_build_link_evidence(_GENERATION[0], link.generation, link.generation_max),
                *_build_link_evidence(_WIDTH[0], link.width, link.width_max),
                compare_with_limit(
                    "data rate of the link", "of the highest", link.ratio, ">=" if is_mild else "<", self.common
                ),
            ),
            lost_gpu_seconds=None,
            samples=link.samples,
            ruled_out=("the rest of an idle GPU: only busy samples count, and the best of them",),
            summary=(
                f"{phrases.gpu_name(device)} ran at {_FRACTIONS.get(link.ratio) or phrases.percent(link.ratio)} of its "
                f"PCIe speed: {_describe_link(link.generation, link.width)} instead of "
                f"{_describe_link(link.generation_max, link.width_max)}."
            ),
            recommendation=KINDS[_KIND].advice[""],
        )


def _read_link(series: DeviceSeries, busy: BoolArray) -> _Link:
    known = np.zeros(len(series), dtype=np.bool_)
    for now, most in (_GENERATION, _WIDTH):
        if series.is_recorded(most):
            known |= ~np.isnan(series.values(now))
    return _Link(
        generation=_find_best(series, _GENERATION[0], busy),
        generation_max=_find_best(series, _GENERATION[1], np.ones(len(series), dtype=np.bool_)),
        width=_find_best(series, _WIDTH[0], busy),
        width_max=_find_best(series, _WIDTH[1], np.ones(len(series), dtype=np.bool_)),
        samples=int((busy & known).sum()),
    )


def _find_best(series: DeviceSeries, metric: str, rows: BoolArray) -> float:
    values = series.values(metric)[rows]
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else float("nan")


def _build_link_evidence(metric: str, best: float, most: float) -> Iterator[Evidence]:
    if not np.isnan(best) and not np.isnan(most):
        limit = pragmatic(most, "", "the most that card and slot allow, as logged")
        relation = "<" if best < most else ">="
        yield compare_with_limit(metric, "max while busy", best, relation, limit)


def _describe_link(generation: float, width: float) -> str:
    """Return a link in words: `gen 4 x16`, without what is not known."""
    parts = [f"gen {generation:.0f}"] if not np.isnan(generation) else []
    return " ".join([*parts, f"x{width:.0f}"] if not np.isnan(width) else parts)


def _report_resting(device: str, samples: int) -> NotJudged:
    return NotJudged(
        kind=_KIND,
        device=device,
        template="{} of the PCIe link while the GPU was busy; at rest the link slows down",
        amounts=(missing_metrics.count_of(samples, "sample"),),
        recording="a log of the job at work, with at least 5 samples",
        code="too_few_busy_samples",
    )
