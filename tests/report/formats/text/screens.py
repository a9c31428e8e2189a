"""Reports with a hand-made first screen: four GPUs of which one overheats, and five steps."""

from dataclasses import replace

import numpy as np

from gpureport.report.model.head import Action, Change, Tile, Verdict
from gpureport.report.model.pictures import (
    SignalHistory,
    SignalLine,
    SignalPanel,
    SpentBar,
    TimeSegment,
    TimeSpent,
)
from gpureport.report.model.report_content import Report
from tests.report import sample_reports

_NAMES = {
    "computing": "Computing",
    "short_pauses": "Short pauses",
    "waiting_for_input": "Waiting for data",
    "throttled": "Slowed by heat",
    "startup": "Start-up",
    "idle": "Idle",
}


def segments(**values: float) -> tuple[TimeSegment, ...]:
    """Return the classes of a bar."""
    return tuple(TimeSegment(key=key, label=_NAMES[key], value=value, text=str(value)) for key, value in values.items())


def hot_run() -> Report:
    """Return the report of a run of four GPUs, of which GPU 2 overheats."""
    fine = segments(computing=0.95, short_pauses=0.022, startup=0.021, idle=0.007)
    hot = segments(computing=0.87, throttled=0.075, short_pauses=0.027, startup=0.021, idle=0.007)
    bars = [SpentBar(label=f"GPU {gpu}", segments=fine, total="12.5 GPU-min") for gpu in range(4)]
    bars[2] = SpentBar(label="GPU 2", segments=hot, total="12.5 GPU-min", note="7.5% lost to heat", is_bad=True)
    clock = np.concatenate([np.full(60, 1710.0), np.linspace(1200, 1497, 90)])
    warm = np.minimum(np.linspace(35, 110, 150), 88)
    panels = (
        _panel("Temperature, 0 to 88 °C", warm, "88 °C, limit 88 °C", 88.0),
        _panel("Clock, 0 to 1,710 MHz", clock, "1,710 → 1,497 MHz"),
        _panel("GPU utilisation, 0 to 100%", np.full(150, 0.98), ""),
    )
    history = SignalHistory(
        gpu="GPU 2",
        title="GPU 2 over time",
        caption="",
        panels=panels,
        start=0.0,
        end=748.0,
        bucket_seconds=5.0,
        ticks=(),
        spans=((290.0, 744.0),),
        span_text="slowed by heat, 7 min 34 s",
    )
    return replace(
        sample_reports.report_on(["thermal_throttle"]),
        verdict=Verdict(
            sentence="GPU 2 overheats: 88 °C, clock down 12% for 7 min 34 s.",
            details=("It lost 56 s of computing, 1.9% of all GPU time.", "The others drew 6% less power meanwhile."),
        ),
        spent=TimeSpent(caption="", columns=("", ""), bars=tuple(bars), end=1.0, ticks=()),
        worst=history,
        actions=(
            _action("Cool GPU 2: airflow, fans, filters, its slot", "saves 1.9% or more"),
            _action("Until then: power limit a bit below 226 W", "gain not known"),
            _action("Say the work done: --work N:UNIT", "turns losses into cost"),
        ),
    )


def five_steps() -> Report:
    """Return the report of five steps, the second of which is better than the first."""
    unclear = "no clear change"
    values = ((3.48, 0.84, 1.89, 0.54), (1.89, 0.91, 0.32, 0.51), (1.82, 0.92, 0.2, 0.57), (1.75, 0.75, 0.2, 0.61))
    changes = (None, Change(text="−46%", verdict="better", arrow="down"), *[Change(text="−4%", verdict=unclear)] * 3)
    labels = ("1-starved", "2-more-workers", "3-pinned-memory", "4-mixed-precision", "5-larger-batch")
    bars = tuple(
        SpentBar(
            label=label,
            segments=segments(
                computing=busy, waiting_for_input=waiting, startup=start, idle=total - busy - waiting - start
            ),
            total=f"{total}",
            change=change,
        )
        for label, (total, busy, waiting, start), change in zip(labels, (*values, values[-1]), changes, strict=True)
    )
    better = Change(text="+110%", interval="+83 to +140%", verdict="better", arrow="up")
    tiles = (
        Tile(label="Whole-job throughput", before="287", value="602", unit="images/s", context="", change=better),
        Tile(
            label="Cost per million images", before="$2.42", value="$1.15", context="At $2.50 a GPU-hour", change=better
        ),
        Tile(
            label="Energy per million images", before="204", value="109", unit="Wh", context="GPU only", change=better
        ),
        Tile(
            label="Peak memory",
            before="10.2",
            value="19.6",
            unit="GiB",
            context="of 79.6 GiB installed: 75% free",
            change=Change(text="+92%", arrow="up"),
        ),
    )
    return replace(
        sample_reports.report_on(sample_reports.SETS["five steps"]),
        verdict=Verdict(
            sentence="52% less GPU time per image; most of it from more loader workers.",
            details=("Between 45 and 58% less (95% interval).", "Largest loss now: start-up, 43%."),
        ),
        tiles=tiles,
        spent=TimeSpent(caption="", columns=("GPU-s per 1,000 images", ""), bars=bars, end=4.0, ticks=()),
        actions=(
            _action("Shorten start-up", "saves up to 43% of runs this short"),
            _action("Use the free memory: larger batch", "gain not known: measure it"),
            _action("Measure longer runs", "settles steps 3 to 5"),
        ),
    )


def _panel(label: str, mean: np.ndarray, note: str, limit: float | None = None) -> SignalPanel:
    lines = (SignalLine(label="others", mean=mean * 0.8, is_main=False), SignalLine(label="GPU 2", mean=mean))
    return SignalPanel(
        quantity=label, label=label, lines=lines, low=0.0, high=float(mean.max()), limit=limit, note=note
    )


def _action(title: str, gain: str) -> Action:
    return Action(title=title, gain=gain, text="", certainty="")
