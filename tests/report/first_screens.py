"""Reports whose first screen is made by hand, as large and as long as one can be."""

from dataclasses import replace

import numpy as np

from gpureport.report.model.finding_rows import FindingRow, RunMark
from gpureport.report.model.head import Action, Change, Tile, Verdict
from gpureport.report.model.pictures import (
    ClassName,
    ClassStretch,
    SignalHistory,
    SignalLine,
    SignalPanel,
    SpentBar,
    Tick,
    TimeSegment,
    TimeSpent,
    UseOverTime,
    UseRow,
)
from gpureport.report.model.report_content import Report

BETTER = Change(text="−52%", interval="−58 to −45%", verdict="better", arrow="down")
GREY = Change(text="−4%", interval="−13 to +6%", verdict="no clear change", arrow="down")
WORSE = Change(text="12 times", interval="8.1 to 14 times", verdict="worse", arrow="up")
FIGURE = Change(text="+92%", arrow="up")

_TICKS = (Tick(at=0, text="0 s"), Tick(at=1, text="1"), Tick(at=2, text="2"), Tick(at=3, text="3"))


def build_tiles() -> tuple[Tile, ...]:
    """Return four tiles of steps: better, no clear change, worse, and a figure without direction."""
    rate = Tile(label="Whole-job throughput", value="602", before="287", unit="images/s", context="", change=BETTER)
    cost = Tile(label="Cost per million images", value="$1.15", before="$2.42", context="At $2.50", change=GREY)
    energy = Tile(label="Energy per million images", value="109", before="204", unit="Wh", context="", change=WORSE)
    memory = Tile(label="Peak memory", value="19.6", before="10.2", unit="GiB", context="of 79.6", change=FIGURE)
    return rate, replace(cost, context="At $2.50 per GPU-hour"), replace(energy, context="GPU only"), memory


def build_spent(labels: tuple[str, ...], *, rates: bool = True) -> TimeSpent:
    """Return bars of GPU time, the first without a change."""
    segments = (
        TimeSegment(key="computing", label="Computing", value=0.84, text="0.84"),
        TimeSegment(key="waiting_for_input", label="Waiting for data", value=1.1, text="1.10"),
        TimeSegment(key="startup", label="Start-up", value=0.54, text="0.54"),
        TimeSegment(key="idle", label="Idle", value=0.2, text="0.20"),
    )
    changes = (None, BETTER, GREY, WORSE)
    bars = tuple(
        SpentBar(
            label=label,
            segments=segments,
            total="2.68",
            small="run 1",
            interval=(2.2, 3.0),
            change=changes[place % 4],
            note="first step" if place == 0 else "",
            beside="1,372 images/s" if rates else "",
            beside_change=changes[place % 4] if rates else None,
        )
        for place, label in enumerate(labels)
    )
    columns = ("GPU-s per 1,000 images, change from step before", "Training alone" if rates else "")
    legend = tuple(ClassName(key=part.key, label=part.label) for part in segments)
    caption = "GPU time per 1,000 images; shorter is better. Line under a bar's end: 95% interval."
    since = BETTER if rates else None
    return TimeSpent(
        caption=caption,
        columns=columns,
        bars=bars,
        end=4,
        ticks=_TICKS,
        legend=legend,
        since_first=BETTER,
        beside_since_first=since,
    )


def build_use(labels: tuple[str, ...]) -> UseOverTime:
    """Return utilisation over time."""
    mean = np.abs(np.sin(np.linspace(0, 9, 120)))
    band = (
        ClassStretch(key="startup", start=0, end=17),
        ClassStretch(key="computing", start=17, end=80),
        ClassStretch(key="idle", start=80, end=119),
    )
    text = "GPU 34% busy in 96 s of training"
    rows = tuple(
        UseRow(label=label, small="run 1", mean=mean, bucket_seconds=1, band=band, total="119 s", text=text)
        for label in labels
    )
    ticks = tuple(Tick(at=each, text=f"{each} s") for each in (0, 30, 60, 90, 120))
    return UseOverTime(caption="The middle run of each step.", rows=rows, seconds=120, ticks=ticks)


def build_history(title: str) -> SignalHistory:
    """Return three panels of one GPU with a shaded stretch."""
    mean = np.abs(np.sin(np.linspace(0, 9, 120)))
    used = SignalPanel(
        quantity="GPU utilisation",
        label="GPU utilisation",
        lines=(SignalLine(label="GPU 2", mean=mean),),
        low=0,
        high=1,
    )
    hot = SignalPanel(
        quantity="Temperature",
        label="Temperature",
        lines=(SignalLine(label="GPU 2", mean=60 + 28 * mean), SignalLine(label="others", mean=mean, is_main=False)),
        low=0,
        high=100,
        limit=88,
        limit_text="limit 88 °C",
        note="88 °C, limit 88 °C",
    )
    return SignalHistory(
        gpu="GPU 2",
        title=title,
        caption="Thick red: GPU 2. Thin grey: the other three. Shaded: slowed by heat.",
        panels=(hot, replace(used, is_filled=True, note="works 34%")),
        start=0,
        end=120,
        bucket_seconds=1,
        ticks=tuple(Tick(at=each, text=f"{each} s") for each in (0, 30, 60, 90, 120)),
        spans=((17, 80),),
        span_text="slowed by heat, 7 min 34 s",
    )


def _rows(labels: tuple[str, ...]) -> tuple[FindingRow, ...]:
    marks = tuple(
        RunMark(run=f"{label}/{run}", step=label, outcome=outcome)
        for label in labels
        for run, outcome in enumerate(("found", "not found", "not assessed"))
    )
    first = FindingRow(
        id="R1",
        kind="cpu_bound_single",
        title="Waiting for data: one CPU core saturated",
        severity="problem",
        confidence="medium",
        runs=f"3 of {len(marks)} runs of {labels[0]}",
        extent="55 to 67 s, 53 to 57% of a run",
        summary="One core was saturated for 1 min 21 s to 1 min 36 s while the GPU worked 27 to 34% of that time.",
        cost="55 to 67 GPU-s a run, 53 to 57% of it",
        advice="Use more loader workers, as processes.",
        caveats=("A thread that spins while it waits looks the same.", "Only waits over 10 s count."),
        marks=marks,
        history=build_history("GPU 0 over time"),
        cards=("F1",),
    )
    start = replace(first, id="R2", kind="startup_idle", title="Slow start", severity="warning", history=None)
    unused = replace(start, id="R3", kind="mem_headroom", title="Unused GPU memory", severity="info", cost="")
    return first, start, unused


def build_actions() -> tuple[Action, ...]:
    """Return three things to do."""
    text = "For 17 of 23 s the GPU's memory was still empty while one CPU core was saturated: imports and set-up."
    start = Action(
        title="Shorten start-up",
        gain="Saves up to 43% of a run this short",
        text=text,
        certainty="High: in 15 of 15 runs.",
        finding="R2",
    )
    memory = replace(start, title="Use the free memory", gain="Gain not known", finding="R3")
    return start, memory, replace(memory, title="Measure longer runs", command="gpureport report a b c --repeat 3")


def fill_first_screen(report: Report, labels: tuple[str, ...], *, single: bool = False) -> Report:
    """Return a report with a first screen of these steps, or of a single run with these GPUs."""
    return replace(
        report,
        verdict=Verdict(
            sentence="52% less GPU time per image; most of it from more loader workers.",
            details=(
                "The saving is between 45 and 58% (95% interval, 3 runs per step).",
                "Start-up is now the largest loss, 43% of every run: shorten it next.",
            ),
        ),
        tiles=build_tiles(),
        spent=build_spent(labels, rates=not single),
        use=None if single else build_use(labels),
        worst=build_history("GPU 2 over time") if single else None,
        actions=build_actions(),
        rows=_rows(labels),
    )
