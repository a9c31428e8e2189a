"""A difference between steps in words: its size, its interval, the verdict, and what would settle it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import isfinite

from gpureport.comparison.steps.steps import Delta, Verdict
from gpureport.comparison.steps.verdict_reason import ReasonKind
from gpureport.report.wording import display
from gpureport.report.wording.differences.comparison_reasons import describe_reason
from gpureport.report.wording.differences.relative_changes import format_percent_range, format_relative_difference
from gpureport.report.wording.ranges import drop_equal_ends
from gpureport.report.wording.scales import NUMBERS, Scale

ONCE_SETTLED = " once settled"
"""Suffix of a title whose figure leaves out start-up and the time until the run had settled."""

WHOLE_RUN_UTILISATION = "GPU utilisation, whole run"
"""Title of the figure that leaves nothing out."""

_TOLD = {ReasonKind.SAME_RECORDING, ReasonKind.MANY_COMPARISONS}
"""Reasons without which a sentence on no clear change would puzzle."""
_LONGEST = 365 * 86_400.0
"""Longest recording in seconds that a reader can be asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureFormat:
    """How a figure is printed.

    Attributes:
        title: its name.
        scale: units of its differences, and of its values unless it is a share.
        percent: prints the values of a share; None of any other figure.
        absent: what stands for a value that there is not.
        per: the batch of work that values are for: `per million images`; empty of other figures.
    """

    title: str
    scale: Scale = NUMBERS
    percent: Callable[[float], str] | None = None
    absent: str = display.NOT_RECORDED
    per: str = ""

    def format_value(self, value: float | None) -> str:
        """Return a value, or what stands for one that there is not."""
        return self.absent if value is None else self.value(value)

    @property
    def value(self) -> Callable[[float], str]:
        """What prints a value."""
        return self.percent or self.scale.format

    @property
    def noun(self) -> str:
        """Its name within a sentence."""
        return display.lower_first(self.title)

    def for_delta(self, delta: Delta) -> "FigureFormat":
        """Return the format with a title that fits the window of a difference: settled time or whole recordings."""
        return self.once_settled() if delta.window == "steady" else self

    def once_settled(self) -> "FigureFormat":
        """Return the format for figures of the settled time."""
        return replace(self, title=f"{self.title}{ONCE_SETTLED}")

    def format_pair(self, before: float | None, after: float | None) -> tuple[str, str]:
        """Return two values side by side."""
        shown = self.for_values((before, after))
        return shown.format_value(before), shown.format_value(after)

    def for_values(self, values: Iterable[float | None]) -> "FigureFormat":
        """Return the format for values shown together: shares all have a decimal if one of them does."""
        return replace(self, percent=display.percent_formatter(values)) if self.percent else self

    def format_change(self, difference: float, *values: float | None) -> str:
        """Return a difference with its sign and, of no share, at most as many decimals as the two values."""
        return self.scale.format_change(
            difference, [] if self.percent else [value for value in values if value is not None]
        )


def format_interval(delta: Delta, shown: FigureFormat) -> str:
    """Return both ends of an interval, the unit said once; empty where there is none."""
    if delta.interval is None or not all(map(isfinite, delta.interval)):
        return ""
    low, high = delta.interval
    texts = shown.scale.format_signed(low), shown.scale.format_signed(high)
    if texts[0] == texts[1]:
        # narrower than what is shown of the difference itself
        return ""
    same_unit = shown.scale.unit(low) == shown.scale.unit(high)
    return f"{shown.scale.format_signed(low, bare=same_unit)} to {texts[1]}"


def describe_verdict(delta: Delta) -> str:
    """Return a verdict in words: one run against several is unconfirmed as well, though not one run each."""
    missing = _describe_missing_runs(delta)
    return f"{delta.verdict.short} ({missing})" if missing else delta.verdict.value


def _describe_missing_runs(delta: Delta) -> str:
    """Return where a repetition is missing; empty where a change is not unconfirmed."""
    if delta.verdict is not Verdict.UNCONFIRMED:
        return ""
    return "one run on one side" if max(delta.runs) > 1 else "one run each"


def difference_sentence(delta: Delta, shown: FigureFormat) -> str:
    """Return what may be said of the figure that a chain is judged by, in one sentence."""
    start = _protect_full_stops(f"From {display.clean(delta.base)} to {display.clean(delta.step)}, ")
    noun = _protect_full_stops(f"{shown.noun} once settled" if delta.window == "steady" else shown.noun)
    before, after = shown.format_pair(delta.before, delta.after)
    sure = _format_certainty(delta, shown)
    if delta.verdict is Verdict.NOT_ENOUGH_DATA:
        sure = sure if format_interval(delta, shown) else ""
        values = "" if delta.difference is None else f" It went from {before} to {after}{sure}."
        why = display.clean_sentence(describe_reason(delta.reason))
        return f"{start}there is not enough data to say whether {noun} changed.{values} {why}".rstrip()
    if delta.verdict is Verdict.NO_CLEAR_CHANGE:
        is_told = delta.reason is not None and delta.reason.kind in _TOLD
        why = f" {describe_reason(delta.reason)}" if is_told else ""
        return f"{start}there is no clear change in {noun}: {before} and {after}{sure}.{why}"
    # brackets follow
    verdict = ", ".join(filter(None, (delta.verdict.short, _describe_missing_runs(delta))))
    return f"{start}{noun} went from {before} to {after}: {verdict}{sure}."


def _protect_full_stops(names: str) -> str:
    """Return names whose full stops cannot end the sentence: headlines are cut after their first sentence."""
    return names.replace(". ", f".{display.GAP}")


def _format_certainty(delta: Delta, shown: FigureFormat) -> str:
    """Return the change and its interval: of a share in points, of any other figure in per cent."""
    between = format_interval(delta, shown)
    runs = f"; {delta.runs[0]} and {delta.runs[1]} runs" if max(delta.runs) > 1 else ""
    change = shown.format_change(delta.difference, delta.before, delta.after) if delta.difference else "no change"
    if not shown.percent and delta.difference and delta.before:
        change = format_relative_difference(delta.difference, delta.before)
        between = between and _format_relative_interval(delta)
    return f" ({change}, 95% interval {between}{runs})" if between else f" ({change}{runs})"


def _format_relative_interval(delta: Delta) -> str:
    """Return both ends of an interval in per cent of what was before."""
    if delta.interval is None or not delta.before:
        return ""
    low, high = (1 + end / delta.before for end in delta.interval)
    return drop_equal_ends(format_percent_range((low, high)))


def describe_precision(delta: Delta, shown: FigureFormat) -> Iterator[str]:
    """Yield what such recordings can show of a figure, and what would make the verdict surer."""
    detectable = delta.detectable_difference
    # runs that agree to within their resolution give 0, which is no size to state
    if not detectable or not isfinite(detectable):
        return
    yield f"Recordings like these can show a difference of {shown.scale.format(detectable)} or more."
    # what is established needs no narrower interval
    if delta.needed is not None and not delta.verdict.is_established:
        yield from _recordings_needed(delta, shown)
    if delta.unseen_gap_seconds is not None and delta.metric in {"gpu_utilization_ratio", "idle_ratio"}:
        rare = display.duration(delta.unseen_gap_seconds)
        yield (
            f"A run shows no time in which most of its GPUs are idle: with 95% confidence there is less than one such "
            f"gap in {rare}."
        )


def _recordings_needed(delta: Delta, shown: FigureFormat) -> Iterator[str]:
    """Yield how much longer, or how many more runs, an interval of two points either way would take."""
    if delta.needed is None:
        return
    aim = f"An interval of ±{shown.scale.format(delta.needed.half_width)}"
    seconds, runs = delta.needed.seconds, delta.needed.runs
    if runs is not None:
        yield f"{aim} takes {runs} runs a step."
    elif seconds is not None and seconds < _LONGEST:
        yield f"{aim} takes {display.duration(seconds)} of steady state in each run."
    else:
        yield f"{aim} is out of reach of more recordings like these."
