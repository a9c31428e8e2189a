"""A difference between steps in words: its size, its interval, the verdict, and what would settle it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import isfinite

from gpureport.comparison.evidence import ReasonKind
from gpureport.comparison.verdict import Delta, Needed, Verdict
from gpureport.report.wording import display
from gpureport.report.wording.scales import NUMBERS, Scale

ONCE_SETTLED = " once settled"
"""Suffix of a title whose figure leaves out start-up and the time until the run had settled."""

WHOLE_RUN_UTILISATION = "GPU utilisation, whole run"
"""Title of the figure that leaves nothing out."""

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
    if delta.reason and delta.reason.kind is ReasonKind.DRIFT:
        return "the machine drifted"
    return "one run on one side" if max(delta.runs) > 1 else "one run each"


def describe_precision(delta: Delta, shown: FigureFormat) -> Iterator[str]:
    """Yield what such recordings can show of a figure, and what would make the verdict surer."""
    detectable = delta.detectable_difference
    # runs that agree to within their resolution give 0, which is no size to state
    if not detectable or not isfinite(detectable):
        return
    yield f"Recordings like these can show a difference of {shown.scale.format(detectable)} or more."
    # what is established needs no narrower interval
    if delta.needed is not None and not delta.verdict.is_established:
        yield from _recordings_needed(delta.needed, shown)
    if delta.unseen_gap_seconds is not None and delta.metric in {"gpu_utilization_ratio", "idle_ratio"}:
        rare = display.duration(delta.unseen_gap_seconds)
        yield (
            f"A run shows no time in which most of its GPUs are idle: with 95% confidence there is less than one such "
            f"gap in {rare}."
        )


def _recordings_needed(needed: Needed, shown: FigureFormat) -> Iterator[str]:
    """Yield how much longer, or how many more runs, an interval of two points either way would take."""
    aim = f"An interval of ±{shown.scale.format(needed.half_width)}"
    if needed.runs is not None:
        yield f"{aim} takes {needed.runs} runs a step."
    elif needed.seconds is not None and needed.seconds < _LONGEST:
        yield f"{aim} takes {display.duration(needed.seconds)} of steady state in each run."
    else:
        yield f"{aim} is out of reach of more recordings like these."
