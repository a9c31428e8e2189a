"""The results of `analyze` and `compare`, with data frames, figures, a short repr, and a notebook view."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from gpureport.analysis import results
from gpureport.analysis.rulebook import Rule
from gpureport.columns import integers
from gpureport.comparison import chain
from gpureport.comparison.factors import Factor
from gpureport.comparison.gains import build_gains
from gpureport.findings import Severity
from gpureport.metrics import BY_NAME
from gpureport.recording import Recording, local_times
from gpureport.report import build
from gpureport.report.charts.palette import CLASSES, COLOURS, OTHER_CLASS
from gpureport.report.runs import gpu_time
from gpureport.report.wording import display, reasons, terms

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gpureport.report.model.report_content import Report

_SPAN = ("start", "end", "lost_gpu_seconds", "cause")
_FINDING = ("kind", "severity", "confidence", "devices", *_SPAN, "summary", "recommendation", "fingerprint")
_ENDS = ("interval_low", "interval_high")
_CHANGE = ("before", "after", "difference", *_ENDS)
_DELTA = ("base", "step", "metric", "unit", *_CHANGE, "level", "basis", "verdict", "reason", "family")
_GAIN = ("base", "step", "figure", "ratio", *_ENDS, "verdict", "reason")
_GAINS = ("whole_job", "training", "gpu_time", "cost", "energy")
_QUALITY = ("base", "step", "metric", "higher_is_better", "work", "work_unit", *_CHANGE, "verdict", "reason")
_STATISTICS = ("device", *(field.name for field in fields(results.MetricSummary) if field.name != "below"))
_SHOWN = 8  # maximum number of findings in a notebook; the rest are counted
_SIGNALS = ("gpu_utilization_ratio", "gpu_power_watts", "gpu_sm_clock_hertz", "gpu_temperature_celsius")
_UNITS = {"1": ("%", 100.0), "Hz": ("MHz", 1e-6), "By": ("GiB", 2.0**-30), "Cel": ("°C", 1.0)}
_GAP = 5.0  # Gap between samples, in sampling intervals, above which a line is broken.
_WIDTH, _HEIGHT, _PANEL = 9.0, 4.0, 1.8  # Width and height of a figure in inches, and height of a panel.
_BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "fontsize": "small"}
Figure = Literal["changes", "gpu_time", "overlay"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Analysis(results.Analysis):
    """The analysis of one run, with the run itself."""

    recording: Recording = field(compare=False)
    rules: tuple[Rule, ...] = field(compare=False)
    kinds: frozenset[str]

    def findings_frame(self) -> "pd.DataFrame":
        """Return one row per finding, most severe first; findings about the whole run have no `start` or `end`."""
        spans = (each.intervals for each in self.findings)
        ends = ({"start": own[0].start, "end": own[-1].end} if own else {} for own in spans)
        frame = _make_frame(_FINDING, zip(self.findings, ends, strict=True))
        return frame.assign(**{name: local_times(frame[name], self.run.timezone) for name in ("start", "end")})

    def statistics_frame(self) -> "pd.DataFrame":
        """Return one row per device and metric, in base units: ratios from 0 to 1, bytes, watts, hertz.

        `below_0.25` is the share of time in which the metric was below 0.25.
        """
        named = [(each.device, metric) for each in self.statistics for metric in each.metrics]
        below = [{f"below_{limit:g}": part for limit, part in metric.below} for _, metric in named]
        rows = ((metric, {"device": name, **own}) for (name, metric), own in zip(named, below, strict=True))
        return _make_frame(_STATISTICS, rows)

    def gpu_time_frame(self) -> "pd.DataFrame":
        """Return the seconds that each GPU (rows, indexed by device) spent in each class of GPU time (columns)."""
        frame = _make_frame(["device"], ((each, dict(each.seconds)) for each in self.gpu_time)).set_index("device")
        return _order_classes(frame.fillna(0.0).loc[:, frame.any()])

    def plot(self, metrics: Sequence[str] = (), devices: Sequence[str] = ()) -> "Sequence[Axes]":
        """Draw each metric in its own panel with matplotlib, shade the times of findings, and return the panels.

        `metrics` are columns of the series (default: utilisation, power, clock and temperature), and `devices` are ids
        such as `"gpu:0"` (default: all GPUs).
        """
        run, recorded, known = self.run, self.recording.series.column_names, [each.id for each in self.run.devices]
        shown = sorted(set(devices) or {device.id for device in run.gpus})
        panels = list(metrics) or [name for name in _SIGNALS if name in recorded]
        for unknown in sorted({*panels} - {*recorded} | {*shown} - {*known}):
            raise ValueError(f"{unknown!r} was not recorded; choose from {', '.join([*recorded, *known])}")
        axes = _make_axes(len(panels) or 1, 1 + _PANEL * (len(panels) or 1))
        for panel, metric in zip(axes, panels, strict=False):
            for device in shown:
                rows = self.recording.rows_of(device).select(["timestamp", metric]).drop_null()
                minutes = (integers(rows["timestamp"]) - run.started) / 6e7
                values = _scale(rows[metric].to_numpy().astype(float), metric)
                # break the line where samples are missing
                gaps = np.flatnonzero(np.diff(minutes) > _GAP * (run.interval or np.inf) / 60) + 1
                broken = [np.insert(each, gaps, np.nan) for each in (minutes, values)]
                panel.plot(*broken, label=device, linewidth=0.8)
            panel.set_ylabel(_label(metric))
            for finding in self.findings:
                for span in finding.intervals if {*shown} & {*finding.devices} else ():
                    start, end = ((at - run.started) / 6e7 for at in (span.start, span.end))
                    panel.axvspan(start, end, color=COLOURS[finding.severity.value], alpha=0.15, label=finding.kind)
        axes[0].set_title(run.name)
        axes[-1].set_xlabel("minutes since the first sample")
        # one legend entry per kind
        drawn = {label: handle for handle, label in zip(*axes[0].get_legend_handles_labels(), strict=True)}
        axes[0].legend(drawn.values(), drawn.keys(), **_BESIDE)
        return axes

    def __repr__(self) -> str:
        problems = sum(finding.severity is Severity.PROBLEM for finding in self.findings)
        count = f"{len(self.findings)} finding{'' if len(self.findings) == 1 else 's'}, {problems} of them problems"
        return f"<Analysis {self.run.name!r}: {count}>"

    def _repr_html_(self) -> str:
        return _show([self])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(chain.Comparison):
    """The steps in order and the differences between them, with the analyses of their runs.

    Attributes:
        analyses: the analysis of every run, in step order.
    """

    analyses: tuple[Analysis, ...] = field(compare=False)
    throughput: str | None = None
    by: tuple[Factor, ...] = ()

    def deltas_frame(self) -> "pd.DataFrame":
        """Return one row per figure and pair of steps: before, after, the interval of the difference, and the verdict.

        If a target was given, the time to reach it is one of the figures.
        """
        return _make_frame(_DELTA, ((each, {}) for each in self.deltas))

    to_pandas = deltas_frame

    def gains_frame(self) -> "pd.DataFrame":
        """Return one row per figure with its gain: the later value as a multiple of the earlier one."""
        rows = []
        for row in build_gains(self):
            for base, gain in {gain.base: gain for gain in (row.since_before, row.since_first) if gain}.items():
                for name in _GAINS:
                    if figure := getattr(gain, name):
                        rows.append((figure, {"base": base, "step": row.step.label, "figure": name}))
        return _make_frame(_GAIN, rows)

    def quality_frame(self) -> "pd.DataFrame":
        """Return one row per training metric and pair of steps: its values after the same work, and the verdict."""
        rows = []
        for change in (change for pair in chain.pair_steps(self) for change in pair.quality):
            before, after = change.values
            known = {
                "metric": change.name,
                "before": before,
                "after": after,
                "reason": reasons.describe_no_work(change.reason),
            }
            rows.append((change, known))
        return _make_frame(_QUALITY, rows)

    def findings_frame(self) -> "pd.DataFrame":
        """Return one row per finding in any run, with its step and run."""
        return self._join(each.findings_frame() for each in self.analyses).droplevel(2).reset_index()

    def gpu_time_frame(self) -> "pd.DataFrame":
        """Return the seconds that each GPU spent in each class of GPU time, indexed by step, run and device."""
        return _order_classes(self._join(each.gpu_time_frame() for each in self.analyses).fillna(0.0))

    def _join(self, frames: "Iterable[pd.DataFrame]") -> "pd.DataFrame":
        import pandas as pd

        keys = [(each.run.step or each.run.name, each.run.name) for each in self.analyses]
        return pd.concat(list(frames), keys=keys, names=["step", "run"])

    def plot(self, figure: Figure = "changes", *, metric: str = _SIGNALS[0], axes: "Axes | None" = None) -> "Axes":
        """Draw one figure with matplotlib, and return its axes.

        `figure` is `changes` (percentage changes from first to last step, with intervals), `gpu_time` (of each step,
        by class) or `overlay` (the series column `metric` in the first run of each step).
        """
        if figure not in get_args(Figure):
            raise ValueError(f"there is no figure {figure!r}; use changes, gpu_time or overlay")
        drawn = axes or _make_axes(1, _HEIGHT)[0]
        getattr(self, f"_draw_{figure}")(drawn, metric)
        return drawn

    def _draw_changes(self, axes: "Axes", _: str) -> None:
        first, last = self.steps[0].label, self.steps[-1].label
        known = [each for each in self.between(first, last) if each.before and each.difference is not None]
        for place, delta in enumerate(known):
            scale = 100 / abs(delta.before or 1.0)
            colour = COLOURS["busy" if delta.verdict.is_established else "muted"]
            if delta.interval is not None:
                axes.plot([end * scale for end in delta.interval], [place, place], color=colour)
            axes.plot((delta.difference or 0.0) * scale, place, "o" if delta.interval else "|", color=colour)
        axes.set_yticks(range(len(known)), [f"{terms.name_figure(each.metric)}: {each.verdict}" for each in known])
        axes.invert_yaxis()
        axes.axvline(0, color=COLOURS["muted"], linewidth=0.8)
        axes.set_xlabel(f"% change from {first} to {last}, with its 95% interval")

    def _draw_gpu_time(self, axes: "Axes", _: str) -> None:
        seconds = self.gpu_time_frame().groupby("step", sort=False).sum()
        shares, left = 100 * seconds.div(seconds.sum(axis=1), axis=0), np.zeros(len(seconds))
        for name in shares:
            fill, part = CLASSES.get(str(name), OTHER_CLASS), shares[name].to_numpy()
            look: dict[str, Any] = {"color": fill.colour, "hatch": fill.hatch, "edgecolor": "white"}
            axes.barh(shares.index, part, left=left, label=terms.class_title(str(name), ()), **look)
            left += part
        axes.invert_yaxis()
        axes.set_xlabel("% of the GPU time")
        axes.legend(**_BESIDE)

    def _draw_overlay(self, axes: "Axes", metric: str) -> None:
        for step in self.steps:
            run = next(each for each in self.analyses if (each.run.step or each.run.name) == step.label)
            if metric in run.recording.series.column_names:
                rows = run.recording.to_pandas().dropna(subset=metric)
                minutes = (rows["timestamp"] - rows["timestamp"].min()).dt.total_seconds() // 10 / 6
                means = rows[metric].groupby(minutes).mean()
                axes.plot(means.index, _scale(means.to_numpy(), metric), label=step.label)
        axes.set_xlabel("minutes since the start (means over ten seconds)")
        axes.set_ylabel(_label(metric))
        axes.legend(fontsize="small")

    def __repr__(self) -> str:
        first, last = self.steps[0].label, self.steps[-1].label
        judged = self.judged(first, last)
        verdict = f", {judged.metric} {judged.verdict}" if judged else ""
        return f"<Comparison {first!r} to {last!r}: {len(self.steps)} steps, {len(self.analyses)} runs{verdict}>"

    def _repr_html_(self) -> str:
        return _show(self)


def _make_axes(panels: int, height: float) -> "list[Axes]":
    import matplotlib.pyplot as plt

    return [*plt.subplots(panels, sharex=True, squeeze=False, layout="constrained", figsize=(_WIDTH, height))[1][:, 0]]


def _scale(values: Any, metric: str) -> Any:
    return values * _UNITS.get(BY_NAME[metric].unit, ("", 1.0))[1]


def _label(metric: str) -> str:
    unit = BY_NAME[metric].unit
    return f"{display.raise_first(terms.column_title(metric))}\n{_UNITS.get(unit, (unit,))[0]}"


def build_content(found: Sequence[Analysis] | Comparison, title: str | None = None) -> "Report":
    stated: dict[str, Any] = {}
    if isinstance(found, Comparison):
        stated = {"throughput": found.throughput, "by": found.by, "goals": found.goals}
        found = found.analyses
    stated |= {"rules": found[0].rules, "kinds": found[0].kinds}
    return build([(each.recording, each) for each in found], title=title, command="gpureport.report", **stated)


def _show(found: Sequence[Analysis] | Comparison) -> str:
    from gpureport.report.formats.html import template_environment

    report = build_content(found)
    bars, cards = [bar for bar in report.gpu_time if bar.whole], [card for card in report.findings if not card.repeats]
    legend, shown = gpu_time.class_labels(bars), {"cards": cards[:_SHOWN], "more": len(cards[_SHOWN:])}
    shown |= {"headline": display.headline(report.verdict.sentence)[0], "report": report, "bars": bars}
    shown |= {"legend": legend, "fills": {key: CLASSES.get(key, OTHER_CLASS) for key in legend}}
    return template_environment().get_template("notebook.html").render(shown)


def _make_frame(names: Iterable[str], items: Iterable[tuple[object, dict[str, Any]]]) -> "pd.DataFrame":
    import pandas as pd

    rows = []
    for item, known in items:
        ends = dict(zip(_ENDS, getattr(item, "interval", None) or (None, None), strict=True))
        row = {name: getattr(item, name, ends.get(name)) for name in names} | known
        if "reason" in row and "reason" not in known:
            row["reason"] = reasons.describe_reason(row["reason"])
        rows.append({name: value.value if isinstance(value, Enum) else value for name, value in row.items()})
    return pd.DataFrame(rows, columns=list(dict.fromkeys([*names, *(name for row in rows for name in row)])))


def _order_classes(frame: "pd.DataFrame") -> "pd.DataFrame":
    # the same order as in reports
    return frame[sorted(frame, key=[*results.GPU_TIME_CLASSES, *frame].index)]
