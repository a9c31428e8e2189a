"""Printed numbers and log text. `number_format` contains the number formats.

Functions return plain text, with a no-break space between number and unit. None and NaN
print as "not recorded", never as 0.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import partial

from gpureport import number_format
from gpureport.number_format import MINUS

NOT_RECORDED = number_format.NOT_RECORDED
GAP = "\N{NO-BREAK SPACE}"
_HOUR, _MINUTE = 3600, 60
_TIMES = 2  # Ratio from which a multiple reads better than a percentage.
_HEADLINE = 140  # Longer texts keep only their first sentence.
_LARGER = 1000  # Value from which a range uses the larger unit.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.?)")
_UNIT_AFTER_NUMBER = re.compile(
    r"(?<=\d) (?=(?:°C|GPU-(?:h|min|s|ms)|[kMG]Hz|[KMG]iB|[kMG]B/s|[mkM]?Wh|k?W|ms|s|min|h|days)(?:\W|$))"
)
_SENTENCE = re.compile(r"\. (?=[A-Z])")  # end of a sentence; a name may contain `1. one`
_NUMBER = re.compile(r"([−-]?\d[\d.,]*)(\D*)")
"""Matches a number and its unit, but not a length in two units (`1 min 21 s`)."""
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
Show = Callable[[float], str]  # functions that print a value with its unit


def clean(text: str) -> str:
    spaced = " ".join(_ESCAPES.sub("", text).split())
    # fast path: printable text has no characters to remove
    if spaced.isprintable():
        return spaced
    kept = (char for char in spaced if unicodedata.category(char) not in _INVISIBLE)
    # XML forbids Unicode noncharacters
    known = (char for char in kept if ord(char) & 0xFFFE != 0xFFFE)  # noqa: PLR2004 - Unicode
    return "".join(char for char in known if not "\ufdd0" <= char <= "\ufdef").strip()


def plain(text: str) -> str:
    return clean(text).replace(GAP, " ")


def clean_sentence(text: str) -> str:
    return _UNIT_AFTER_NUMBER.sub(GAP, clean(text))


def headline(text: str) -> tuple[str, str]:
    first, *rest = _SENTENCE.split(text, maxsplit=1) if len(text) > _HEADLINE else (text,)
    return (f"{first}.", rest[0]) if rest else (text, "")


def shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def shorten_middle(text: str, length: int) -> str:
    """Shorten text in the middle, since names often differ at the end."""
    tail = length // 2
    return text if len(text) <= length else f"{text[: length - tail - 1].rstrip()}…{text[-tail:].lstrip()}"


def terminal_width(text: str) -> int:
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1
        for char in text
    )


def pad_to_width(text: str, width: int, *, right: bool = False) -> str:
    spaces = " " * (width - terminal_width(text))
    return f"{spaces}{text}" if right else f"{text}{spaces}"


def lower_first(text: str) -> str:
    """Lower-case the first letter for use in a sentence, unless it starts an abbreviation."""
    return text if text[1:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def raise_first(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def plural(count: int, noun: str) -> str:
    return f"{integer(count)} {noun}{'' if count == 1 else 's'}"


def join_words(words: list[str] | tuple[str, ...]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else list(words))


def join(*texts: str, by: str = "; ") -> str:
    return by.join(filter(None, texts))


def join_first(texts: list[str], most: int, noun: str = "") -> str:
    left = len(texts) - most
    return "; ".join([*texts[:most], *([plural(left, f"more {noun}") if noun else f"{left} more"] if left > 0 else [])])


integer, number, signed = number_format.format_integer, number_format.format_number, number_format.format_signed


def percent(ratio: float, *, finely: bool = False) -> str:
    """Return a percentage, with a decimal below 10%, between 98.5% and 100%, or if `finely`."""
    value = ratio * 100
    fine = 98.5 <= abs(value) < 100 or (finely and value not in {0, 100})  # noqa: PLR2004 - per cent
    if not fine or abs(value) < 1:
        return number_format.format_percent(ratio)
    text = integer(value) if round(abs(value), 1) == 100 else f"{value:.1f}"  # noqa: PLR2004 - per cent
    return f"{text.replace('-', MINUS)}%"


def percent_formatter(ratios: Iterable[float | None]) -> Show:
    texts = [percent(ratio) for ratio in ratios if ratio is not None]
    return partial(percent, finely=True) if any("." in text for text in texts) else percent


def percentage_points(ratio: float) -> str:
    return f"{number_format.add_sign(f'{ratio * 100:.1f}')}{GAP}points"


def elapsed(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // _HOUR}:{whole % _HOUR // _MINUTE:02d}:{whole % _MINUTE:02d}"


def _keep_together(show: Show) -> Show:
    return lambda value: show(value).replace(" ", GAP)


duration = _keep_together(number_format.format_duration)
gpu_time = _keep_together(number_format.format_gpu_time)
memory = _keep_together(number_format.format_memory)
clock = _keep_together(number_format.format_clock)
energy = _keep_together(number_format.format_energy)
mass = _keep_together(partial(number_format.format_scaled, units=number_format.MASS))
throughput = _keep_together(partial(number_format.format_scaled, units=number_format.THROUGHPUT))


def duration_below(seconds: float, limit: float) -> str:
    """Return a duration, with a decimal just below a limit to avoid rounding up: `19.5 s`."""
    is_rounded_up = seconds < limit <= round(seconds)
    return f"{math.floor(seconds * 10) / 10:.1f}{GAP}s" if is_rounded_up else duration(seconds)


def rough_duration(seconds: float, least: float = 600) -> str:
    return duration(_MINUTE * round(seconds / _MINUTE) if seconds >= least else seconds)


def power(watts: float) -> str:
    return f"{number(watts)}{GAP}W"


def money(amount: float, currency: str = "") -> str:
    return number_format.format_money(amount, clean(currency)).replace(" ", GAP)


def temperature(celsius: float) -> str:
    return f"{celsius:.1f}".replace("-", MINUS).removesuffix(".0") + f"{GAP}°C"


_UNITS: dict[str, Show] = {
    "1": percent,
    "s": duration,
    "Cel": temperature,
    "W": power,
    "By": memory,
    "By/s": throughput,
    "Hz": clock,
    "J": energy,
    "g": mass,
}
_COUNTED = ("", "rows", "cores")  # units of counts


def quantity(value: float | None, unit: str) -> str:
    if value is None or math.isnan(value):
        return NOT_RECORDED
    if unit in _COUNTED and value == round(value):
        return f"{integer(value)}{GAP}{clean(unit).removesuffix('s' if value == 1 else '')}".rstrip()
    if unit == "1" and abs(value) >= _TIMES:
        text = f"{number(value)}{GAP}times"
    else:
        text = _UNITS[unit](value) if unit in _UNITS else f"{number(value)}{GAP}{clean(unit)}".rstrip()
    return text.replace(f".0{GAP}", GAP).replace(".0%", "%")


def or_not_recorded(value: float | None, shown: Show) -> str:
    return NOT_RECORDED if value is None or math.isnan(value) else shown(value)


def format_range(values: Iterable[float], show: Show) -> str:
    """Return the minimum and maximum with one unit, or a single text if they print alike."""
    known = list(values)
    least, most = show(min(known)), show(max(known))
    low, high = _NUMBER.fullmatch(least), _NUMBER.fullmatch(most)
    if least == most:
        return most
    return f"{low[1]} to {most}" if low and high and low[2] == high[2] else f"{least} to {most}"


def format_gpu_time_range(seconds: Iterable[float]) -> str:
    """Return `55.3 to 67.2 GPU-s`, in the unit of the minimum or of a far larger maximum."""
    known = list(seconds)
    units = [number_format.choose_unit(pick(known), number_format.GPU_TIME) for pick in (min, max)]
    name, size = units[0] if max(known) / units[0][1] < _LARGER else units[1]
    return format_range(known, lambda each: f"{number(each / size)}{GAP}{name}")


def format_interval(ends: tuple[float, float], show: Show, unit: str = "") -> str:
    low, high = map(show, ends)
    return "" if low == high else f"{low} to {high}{unit}"


def drop_equal_ends(interval: str) -> str:
    low, _, high = interval.partition(" to ")
    return "" if high.removesuffix("%").removesuffix(" times").partition(GAP)[0] == low else interval
