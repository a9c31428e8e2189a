"""Changes of a figure as multiples and in per cent, with a minus sign as English is set: −46%, 2.10 times."""

from gpureport.number_format import MINUS, format_integer

_TIMES = 10.0
"""Ratio from which a change reads better as times than in per cent."""
_WHOLE = 0.95
"""Per cent from which a change is printed without a decimal: it rounds to one."""


def format_times(ratio: float) -> str:
    """Return a ratio as a multiple: `1.84 times`, whole from tenfold on: `12 times`."""
    return f"{_format_ratio(ratio)} times"


def format_times_range(interval: tuple[float, float]) -> str:
    """Return the ends of a ratio: `1.61 to 2.11`."""
    return f"{_format_ratio(interval[0])} to {_format_ratio(interval[1])}"


def format_percent_change(ratio: float) -> str:
    """Return a ratio as a change in per cent with its sign: −46%, +0.4%; from tenfold on as times."""
    return format_times(ratio) if ratio >= _TIMES else f"{_signed_percent(ratio)}%"


def format_relative_difference(difference: float, before: float | None) -> str:
    """Return a difference as a share of what was before, with its sign; empty where that was nothing."""
    return format_percent_change(1 + difference / before) if before and difference else ""


def format_percent_range(interval: tuple[float, float]) -> str:
    """Return the ends of a change in per cent: −53 to −38%."""
    low, high = interval
    if high >= _TIMES:
        return f"{format_times_range(interval)} times"
    return f"{_signed_percent(low)} to {_signed_percent(high)}%"


def _format_ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < _TIMES - 0.005 else format_integer(ratio)


def _signed_percent(ratio: float) -> str:
    change = (ratio - 1) * 100
    text = f"{abs(change):.0f}" if abs(change) >= _WHOLE else f"{abs(change):.1f}"
    if float(text) == 0:
        return "0"
    return f"{MINUS if change < 0 else '+'}{text}"
