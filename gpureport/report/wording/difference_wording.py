"""A difference between steps in words: its size, its interval, the verdict, and what would settle it."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import isfinite

from gpureport.comparison.steps.steps import Delta, Verdict
from gpureport.comparison.steps.verdict_reason import ReasonKind
from gpureport.report.wording import display
from gpureport.report.wording.comparison_reasons import describe_reason

ONCE_SETTLED = " once settled"
"""Suffix of a title whose figure leaves out start-up and the time until the run had settled."""
_LONGEST = 365 * 86_400.0
"""Longest recording in seconds that a reader can be asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureFormat:
    """How a figure is printed.

    Attributes:
        title: its name.
        value: prints a value.
        change: prints a difference, with its sign.
    """

    title: str
    value: Callable[[float], str]
    change: Callable[[float], str]

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
        shown = self.for_values((before, after)).value
        return display.or_not_recorded(before, shown), display.or_not_recorded(after, shown)

    def for_values(self, values: Iterable[float | None]) -> "FigureFormat":
        """Return the format for values shown together: shares all have a decimal if one of them does."""
        return replace(self, value=display.percent_formatter(values)) if self.value is display.percent else self

    def format_change(self, difference: float, *values: float | None) -> str:
        """Return a difference with its sign and at most as many decimals as the two values."""
        text = self.change(difference)
        number, gap, unit = text.partition(display.GAP)
        known = [self.value(value).partition(display.GAP) for value in values if value is not None]
        figures = [figure for figure, _, of in known if of == unit and _NUMBER.fullmatch(figure)]
        if not figures or not _NUMBER.fullmatch(number):
            return text
        decimals = max(map(_decimals, figures))
        if _decimals(number) <= decimals:
            return text
        rounded = f"{float(number):+.{decimals}f}"
        return f"{rounded if float(rounded) else f'within ±{10**-decimals:.{decimals}f}'}{gap}{unit}"


_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")


def _decimals(figure: str) -> int:
    return len(figure.partition(".")[2])


def format_interval(delta: Delta, shown: FigureFormat) -> str:
    """Return both ends of an interval, the unit said once; empty where there is none."""
    if delta.interval is None or not all(map(isfinite, delta.interval)):
        return ""
    low, high = map(shown.change, delta.interval)
    if low == high:
        # narrower than what is shown of the difference itself
        return ""
    number, _, unit = low.partition(display.GAP)
    return f"{number if unit and high.endswith(f'{display.GAP}{unit}') else low} to {high}"


def difference_sentence(delta: Delta, shown: FigureFormat) -> str:
    """Return what may be said of the figure that a chain is judged by, in one sentence."""
    start = _protect_full_stops(f"From {display.clean(delta.base)} to {display.clean(delta.step)}, ")
    noun = _protect_full_stops(f"{shown.noun} once settled" if delta.window == "steady" else shown.noun)
    before, after = shown.format_pair(delta.before, delta.after)
    sure = _format_certainty(delta, shown)
    if delta.verdict is Verdict.CANNOT_JUDGE:
        values = "" if delta.difference is None else f" It went from {before} to {after}."
        why = display.clean_sentence(describe_reason(delta.reason))
        return f"{start}whether {noun} changed cannot be judged.{values} {why}".rstrip()
    if delta.verdict is Verdict.NOT_SHOWN:
        same_recording = delta.reason is not None and delta.reason.kind is ReasonKind.SAME_RECORDING
        same = f" {describe_reason(delta.reason)}" if same_recording else ""
        return f"{start}no difference is shown in {noun}: {before} and {after}{sure}.{same}"
    words = (
        "differs in this pair, not confirmed by repetition" if delta.verdict is Verdict.PAIR else delta.verdict.value
    )
    return f"{start}{noun} went from {before} to {after}: {words}{sure}."


def _protect_full_stops(names: str) -> str:
    """Return names whose full stops cannot end the sentence: headlines are cut after their first sentence."""
    return names.replace(". ", f".{display.GAP}")


def _format_certainty(delta: Delta, shown: FigureFormat) -> str:
    between = format_interval(delta, shown)
    runs = f"; {delta.runs[0]} and {delta.runs[1]} runs" if max(delta.runs) > 1 else ""
    change = shown.format_change(delta.difference, delta.before, delta.after) if delta.difference else "no change"
    return f" ({change}, 95{display.GAP}% interval {between}{runs})" if between else f" ({change}{runs})"


def describe_precision(delta: Delta, shown: FigureFormat) -> Iterator[str]:
    """Yield what such recordings can show of a figure, and what would make the verdict surer."""
    detectable = delta.detectable_difference
    if detectable is None or not isfinite(detectable):
        return
    yield f"Such recordings would show a difference of {shown.change(detectable).removeprefix('+')}."
    if delta.needed is not None:
        yield from _recordings_needed(delta, shown)
    if delta.unseen_gap_seconds is not None and delta.metric in {"gpu_utilization_ratio", "idle_ratio"}:
        rare = display.duration(delta.unseen_gap_seconds)
        yield f"A run shows no gap: with 95{display.GAP}% confidence there is less than one in {rare}."


def _recordings_needed(delta: Delta, shown: FigureFormat) -> Iterator[str]:
    """Yield how much longer, or how many more runs, an interval of two points either way would take."""
    if delta.needed is None:
        return
    aim = f"±{shown.change(delta.needed.half_width).removeprefix('+')}"
    seconds, runs = delta.needed.seconds, delta.needed.runs
    if runs is not None:
        yield f"{aim} takes {runs} runs a step."
    elif seconds is not None and seconds < _LONGEST:
        yield f"{aim} takes {display.duration(seconds)} of steady state in each run."
    else:
        yield f"{aim} is out of reach of more recordings like these."
