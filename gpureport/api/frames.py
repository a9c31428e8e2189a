"""Results as pandas frames. pandas is imported where a frame is made."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gpureport.analysis.results import GPU_TIME_CLASSES, Analysis, MetricSummary
from gpureport.comparison.chain import Comparison, pair_steps
from gpureport.comparison.gains import StepGain, build_gains
from gpureport.comparison.quality import QualityChange
from gpureport.comparison.verdict import Delta
from gpureport.findings import Finding
from gpureport.report.wording.differences.comparison_reasons import describe_no_work, describe_reason
from gpureport.series_table import local_times

if TYPE_CHECKING:
    import pandas as pd

_FINDING = (
    "kind",
    "severity",
    "confidence",
    "devices",
    "start",
    "end",
    "lost_gpu_seconds",
    "cause",
    "summary",
    "recommendation",
    "fingerprint",
)
_DELTA = (
    "base",
    "step",
    "metric",
    "unit",
    "before",
    "after",
    "difference",
    "interval_low",
    "interval_high",
    "level",
    "basis",
    "verdict",
    "reason",
    "family",
)
_GAIN = ("base", "step", "figure", "ratio", "interval_low", "interval_high", "verdict", "reason")
_QUALITY = (
    "base",
    "step",
    "metric",
    "higher_is_better",
    "work",
    "work_unit",
    "before",
    "after",
    "difference",
    "interval_low",
    "interval_high",
    "verdict",
    "reason",
)
_STATISTICS = ("device", *(name for name in MetricSummary.__dataclass_fields__ if name != "below"))


def findings(analysis: Analysis) -> "pd.DataFrame":
    """Return the findings of a run."""
    import pandas as pd  # noqa: PLC0415 - see the head of the module

    frame = pd.DataFrame([_finding(each) for each in analysis.findings], columns=list(_FINDING))
    for name in ("start", "end"):
        frame[name] = local_times(frame[name], analysis.run.timezone)
    return frame


def findings_of_runs(analyses: Sequence[Analysis]) -> "pd.DataFrame":
    """Return the findings of several runs, with step and run as first columns."""
    import pandas as pd  # noqa: PLC0415 - as above

    parts = []
    for analysis in analyses:
        part = findings(analysis)
        part.insert(0, "run", analysis.run.name)
        part.insert(0, "step", analysis.run.step or analysis.run.name)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def statistics(analysis: Analysis) -> "pd.DataFrame":
    """Return the statistics of every metric of every device; `below_0.25` is the share of the time below 0.25."""
    import pandas as pd  # noqa: PLC0415 - as above

    rows = [_summary(each.device, metric) for each in analysis.statistics for metric in each.metrics]
    frame = pd.DataFrame(rows)
    return frame if rows else pd.DataFrame(columns=list(_STATISTICS))


def gpu_time(analysis: Analysis) -> "pd.DataFrame":
    """Return the seconds of each GPU in each class of GPU time; classes without time are left out."""
    import pandas as pd  # noqa: PLC0415 - as above

    rows = {each.device: dict(each.seconds) for each in analysis.gpu_time}
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis(index="device").fillna(0.0)
    return frame[_ordered(name for name in frame.columns if frame[name].any())]


def gpu_time_of_runs(analyses: Sequence[Analysis]) -> "pd.DataFrame":
    """Return the same of several runs, indexed by step, run and device."""
    import pandas as pd  # noqa: PLC0415 - as above

    parts = {(each.run.step or each.run.name, each.run.name): gpu_time(each) for each in analyses}
    frame = pd.concat(parts, names=["step", "run"]).fillna(0.0)
    return frame[_ordered(frame.columns)]


def deltas(comparison: Comparison) -> "pd.DataFrame":
    """Return the differences of a comparison."""
    import pandas as pd  # noqa: PLC0415 - as above

    return pd.DataFrame([_delta(each) for each in comparison.deltas], columns=list(_DELTA))


def gains(comparison: Comparison) -> "pd.DataFrame":
    """Return what each step was worth against the step before and the first one."""
    import pandas as pd  # noqa: PLC0415 - as above

    return pd.DataFrame(_gains(build_gains(comparison)), columns=list(_GAIN))


def quality(comparison: Comparison) -> "pd.DataFrame":
    """Return the final training metrics of each step against the step before."""
    import pandas as pd  # noqa: PLC0415 - as above

    rows = [_quality(change) for pair in pair_steps(comparison) for change in pair.quality]
    return pd.DataFrame(rows, columns=list(_QUALITY))


def _gains(rows: Sequence[StepGain]) -> Iterator[dict[str, Any]]:
    for row in rows:
        since = {gain.base: gain for gain in (row.since_before, row.since_first) if gain is not None}
        for gain in since.values():
            for figure in ("whole_job", "training", "gpu_time", "cost", "energy"):
                change = getattr(gain, figure)
                if change is not None:
                    low, high = change.interval or (None, None)
                    yield {
                        "base": gain.base,
                        "step": row.step.label,
                        "figure": figure,
                        "ratio": change.ratio,
                        "interval_low": low,
                        "interval_high": high,
                        "verdict": change.verdict.value,
                        "reason": describe_reason(change.reason),
                    }


def _quality(change: QualityChange) -> dict[str, Any]:
    low, high = change.interval or (None, None)
    values = {name: getattr(change, name, None) for name in _QUALITY}
    return values | {
        "metric": change.name,
        "before": change.values[0],
        "after": change.values[1],
        "interval_low": low,
        "interval_high": high,
        "verdict": change.verdict.value,
        "reason": describe_no_work(change.reason),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    spans = finding.intervals
    values = {name: getattr(finding, name, None) for name in _FINDING}
    return values | {
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "start": spans[0].start if spans else None,
        "end": spans[-1].end if spans else None,
    }


def _summary(device: str, summary: MetricSummary) -> dict[str, Any]:
    values = {name: value for name, value in asdict(summary).items() if name != "below"}
    return {"device": device} | values | {f"below_{limit:g}": share for limit, share in summary.below}


def _delta(delta: Delta) -> dict[str, Any]:
    low, high = delta.interval or (None, None)
    values = {name: getattr(delta, name, None) for name in _DELTA}
    reason = describe_reason(delta.reason)
    return values | {"interval_low": low, "interval_high": high, "verdict": delta.verdict.value, "reason": reason}


def _ordered(classes: Iterable[str]) -> list[str]:
    """Return classes of GPU time in the order in which every report shows them."""
    present = set(classes)
    return [name for name in GPU_TIME_CLASSES if name in present] + sorted(present - set(GPU_TIME_CLASSES))
