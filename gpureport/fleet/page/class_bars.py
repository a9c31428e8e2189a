"""Where the GPU time went: a bar of all runs, and one of each class, on one axis."""

from gpureport.fleet.fleet_report import ClassTime, FleetReport
from gpureport.fleet.page.amounts import Amounts, explain_prices, format_lost_share
from gpureport.fleet.page.class_words import sort_losses
from gpureport.report.charts.elements import place_ticks
from gpureport.report.model.pictures import SpentBar, TimeSegment, TimeSpent
from gpureport.report.sections.pictures.time_spent import build_segments, describe_pauses, list_legend, sort_classes
from gpureport.report.wording import display, terms

_NEGLIGIBLE = 0.002
"""Share of the axis below which a segment cannot be seen, so that the legend does without it."""

_MUCH = 0.03
"""Share of the GPU time from which the largest loss is flagged."""

_USED = {"computing", "short_pauses"}


def build_class_bars(report: FleetReport, amounts: Amounts) -> TimeSpent | None:
    """Return the bars: all runs, the lost classes, the largest first, then the others."""
    if not report.use.gpu_seconds:
        return None
    end = amounts.scale(report.use.gpu_seconds)
    losses = sort_losses(report.classes)
    shown = {each.name: each for each in report.classes if each.name != "no_job" and each.gpu_seconds > 0}
    others = [shown[name] for name in sort_classes(shown) if shown[name] not in losses]
    bars = [_build_whole(report, amounts)]
    bars += [_build_class(each, report, amounts, is_worst=each is losses[0]) for each in losses]
    bars += [_build_class(each, report, amounts) for each in others]
    return TimeSpent(
        caption=f"{amounts.long_unit} of all jobs, then by class.{describe_pauses(bars[:1])}",
        columns=(amounts.unit, "Cost" if amounts.is_priced else ""),
        bars=tuple(bars),
        end=end,
        ticks=place_ticks(end, amounts.unit.removeprefix("GPU-")),
        legend=list_legend(bars[:1], {}, _NEGLIGIBLE * end),
        rest=" ".join(filter(None, (_describe_no_job(report, amounts), explain_prices(report, amounts)))),
    )


def _build_whole(report: FleetReport, amounts: Amounts) -> SpentBar:
    whole = report.use.gpu_seconds
    scaled = {each.name: amounts.scale(each.gpu_seconds) for each in report.classes}
    share = format_lost_share(report.use)
    return SpentBar(
        label="All runs",
        segments=build_segments(scaled, lambda amount: display.percent(amount * amounts.size / whole), {}),
        total=amounts.format_time(whole),
        note="use not recorded" if share == display.NOT_RECORDED else f"{share} lost",
        beside=amounts.format_money(report.use.cost) if amounts.is_priced else "",
    )


def _build_class(each: ClassTime, report: FleetReport, amounts: Amounts, *, is_worst: bool = False) -> SpentBar:
    # the row names the class and states the share, so its only segment has no text
    segment = TimeSegment(key=each.name, label="", value=amounts.scale(each.gpu_seconds), text="")
    share = display.percent(each.gpu_seconds / report.use.gpu_seconds)
    meaning = "used" if each.name in _USED else "" if each.name == "no_samples" else "lost"
    return SpentBar(
        label=terms.class_title(each.name),
        segments=(segment,),
        total=amounts.format_time(each.gpu_seconds),
        note=f"{share} {meaning}".rstrip(),
        is_bad=is_worst and each.gpu_seconds >= _MUCH * report.use.gpu_seconds,
        beside=amounts.format_money(each.cost) if amounts.is_priced else "",
    )


def _describe_no_job(report: FleetReport, amounts: Amounts) -> str:
    """Return how much GPU time no job held, which is in no share."""
    idle = report.use.no_job_gpu_seconds
    return f"Not counted: {amounts.format_time_and_unit(idle)} in which no job ran." if idle else ""
