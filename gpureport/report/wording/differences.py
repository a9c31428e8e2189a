"""Differences between steps in words: size, interval, verdict, required runs, and set-up changes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from gpureport.comparison.changes import SettingValue, SetupChange
from gpureport.comparison.evidence import ReasonKind
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.number_format import MINUS, format_integer
from gpureport.report.model.head import Change
from gpureport.report.wording import display
from gpureport.report.wording.reasons import count_family, describe_interval
from gpureport.report.wording.scales import NUMBERS, Scale
from gpureport.report.wording.words import WORDS, say

# suffix for the title of a figure without start-up and settling time
ONCE_SETTLED = " once settled"
WHOLE_RUN_UTILISATION = "GPU utilisation, whole run"

_TIMES = 10.0  # Ratio from which changes are shown as multiples.
_WHOLE = 0.95  # Percentage that rounds to 1.
_LONGEST = 365 * 86_400.0  # Longest suggested recording in seconds.
_UNDIRECTED = frozenset(("gpu_memory_used_bytes", "gpu_power_watts", "gpu_sm_clock_hertz", "gpu_graphics_clock_hertz"))
_TRACKER_TAGS = {"mlflow.note.content": "description", "mlflow.source.git.commit": "commit"}
_NEPTUNE_PARAMS = "parameters/"  # Prefix of params in Neptune's guides.
_LISTED, _VALUE = 4, 24  # Maximum changes per line, and length of each.


def format_times(ratio: float) -> str:
    """Return `1.84 times` or, if at least tenfold, `12 times`."""
    return f"{_format_ratio(ratio)} times"


def format_times_range(interval: Sequence[float]) -> str:
    return " to ".join(map(_format_ratio, interval))


def format_percent_change(ratio: float) -> str:
    """Return `−46%`, `+0.4%` or, if at least tenfold, `12 times`."""
    return format_times(ratio) if ratio >= _TIMES else f"{_signed_percent(ratio)}%"


def format_percent_range(interval: Sequence[float]) -> str:
    if interval[1] >= _TIMES:
        return f"{format_times_range(interval)} times"
    return f"{' to '.join(map(_signed_percent, interval))}%"


def _format_ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < _TIMES - 0.005 else format_integer(ratio)


def _signed_percent(ratio: float) -> str:
    change = (ratio - 1) * 100
    text = f"{abs(change):.0f}" if abs(change) >= _WHOLE else f"{abs(change):.1f}"
    return "0" if float(text) == 0 else f"{MINUS if change < 0 else '+'}{text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureFormat:
    """How a figure is printed: on a scale, or by `percent`. `per` is the batch of work, if any."""

    title: str
    scale: Scale = NUMBERS
    percent: Callable[[float], str] | None = None
    absent: str = display.NOT_RECORDED
    per: str = ""

    @property
    def value(self) -> Callable[[float], str]:
        return self.percent or self.scale.format

    @property
    def noun(self) -> str:
        return display.lower_first(self.title)

    def format_sides(self, delta: Delta) -> tuple[str, str, str]:
        """Return both sides and their difference. Shares have the same number of decimals."""
        sides = delta.before, delta.after
        show = display.percent_formatter(sides) if self.percent else self.value
        before, after = (self.absent if value is None else show(value) for value in sides)
        change = "" if delta.difference is None else "none"
        if delta.difference:
            known = [side for side in sides if side is not None and not self.percent]
            change = self.scale.format_change(delta.difference, known)
        return before, after, change

    def format_interval(self, delta: Delta) -> str:
        """Return both ends of an interval, or "" if they print alike."""
        if delta.interval is None or not all(map(isfinite, delta.interval)):
            return ""
        low, high = delta.interval
        first, last = map(self.scale.format_signed, delta.interval)
        units = {self.scale.unit(each) for each in (low, high, delta.difference or low)}
        if first == last or len(units) > 1:
            return "" if first == last else f"{first} to {last}"
        return " to ".join(self.scale.format_signed(end, bare=True) for end in (low, high))

    def describe_precision(self, delta: Delta) -> Iterator[str]:
        detectable, needed = delta.detectable_difference, delta.needed
        # 0 means that the runs agree within their resolution
        if not detectable or not isfinite(detectable):
            return
        # an established change needs no narrower interval
        if not delta.verdict.is_established:
            yield say("precision.detectable", size=self.scale.format(detectable))
        if needed is not None and not delta.verdict.is_established:
            length = display.duration(needed.seconds) if needed.seconds and needed.seconds < _LONGEST else ""
            yield say("precision.needed", width=self.scale.format(needed.half_width), runs=needed.runs, length=length)
        if delta.unseen_gap_seconds is not None and delta.metric in {"gpu_utilization_ratio", "idle_ratio"}:
            yield say("precision.no_gap", length=display.duration(delta.unseen_gap_seconds))


def describe_verdict(delta: Delta) -> str:
    """Return a verdict in words. `unconfirmed` is followed by its reason."""
    if delta.verdict is not Verdict.UNCONFIRMED:
        return delta.verdict.value
    missing = "one run on one side" if max(delta.runs) > 1 else "one run each"
    is_drift = delta.reason is not None and delta.reason.kind is ReasonKind.DRIFT
    return f"{delta.verdict.short} ({'the machine drifted' if is_drift else missing})"


def build_change(delta: Delta | None) -> Change | None:
    if delta is None or delta.difference is None:
        return None
    before, interval = delta.before, ""
    ends = delta.interval if delta.interval and all(map(isfinite, delta.interval)) else None
    if delta.metric.endswith("_ratio"):
        text = display.percentage_points(delta.difference)
        # shares stay between 0 and 100%
        least, most = (-1.0, 1.0) if before is None else (-before, 1 - before)
        interval = format_points([min(max(end, least), most) for end in ends]) if ends else ""
    elif before:
        text = format_percent_change(1 + delta.difference / before)
        interval = format_percent_range([1 + end / before for end in ends]) if ends else ""
    else:
        return None
    verdict = "" if delta.metric in _UNDIRECTED or delta.verdict is Verdict.DIFFERS else describe_verdict(delta)
    comparisons = count_family(delta.reason) if verdict else None
    return Change(
        text=text,
        interval=describe_interval(interval, comparisons),
        verdict=verdict,
        comparisons=comparisons,
        arrow=_choose_arrow(text, is_up=delta.difference > 0),
    )


def build_plain_change(before: float | None, after: float | None) -> Change | None:
    if not before or after is None:
        return None
    text = format_percent_change(after / before)
    return Change(text=text, arrow=_choose_arrow(text, is_up=after > before))


def _choose_arrow(text: str, *, is_up: bool) -> str:
    return ("up" if is_up else "down") if any(digit in "123456789" for digit in text) else ""


def format_points(ends: Sequence[float]) -> str:
    low, high = map(display.percentage_points, ends)
    return f"{low.partition(display.GAP)[0]} to {high}"


def list_setup_changes(changes: Sequence[SetupChange], most: int = _LISTED) -> str:
    """Return at most `most` changes in one line: `workers 2 → 14; pin False → True; and 3 more`."""
    named = []
    for change in changes[:most]:
        before, after = (describe_values(each, _VALUE) for each in (change.values_before, change.values_after))
        name = display.shorten_middle(name_setting(change, in_line=True), _VALUE)
        named.append(f"{name} {before} → {after}")
    more = len(changes) - most
    return "; ".join([*named, *([f"and {more} more"] if more > 0 else [])])


def describe_values(values: Sequence[SettingValue], length: int | None = None) -> str:
    texts = ["not given" if each.text is None else display.clean(each.text) or "empty" for each in values]
    texts = texts if length is None else [display.shorten_middle(text, length) for text in texts]
    if len(values) == 1:
        return texts[0]
    return display.join_words(
        [f"{text} ({display.plural(value.runs, 'run')})" for text, value in zip(texts, values, strict=True)]
    )


def name_setting(change: SetupChange, *, in_line: bool = False) -> str:
    if change.kind == "hardware":
        name = WORDS.get(f"check.{change.key}", change.key)
        return display.lower_first(name) if in_line else name
    return display.clean(_TRACKER_TAGS.get(change.key, change.key)).removeprefix(_NEPTUNE_PARAMS)
