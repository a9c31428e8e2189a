"""Numbers and log text as reports print them. Sentences of findings use `analysis.rules.phrases` instead.

Every function returns plain text without markup, with a no-break space between a number and its unit. None and NaN
print as "not recorded", never as 0.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import partial

from gpureport.analysis.rules import phrases

NOT_RECORDED = "not recorded"
GAP = "\N{NO-BREAK SPACE}"

_HOUR = 3600
_TIMES = 2
"""Ratio from which it reads better as times than as per cent."""

_FINEST = 1e-9
"""Size below which a number is the rounding of a computation."""

_MINUTE = 60
_HEADLINE = 140
"""Letters above which only the first sentence of a verdict is a headline."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.?)")
_UNIT_AFTER_NUMBER = re.compile(r"(?<=\d) (?=(?:%|°C|GPU-h|[kMG]Hz|[KMG]iB|k?Wh?|ms|s|min|h)(?:\W|$))")
_SENTENCE = re.compile(r"\. (?=[A-Z])")
"""Where a sentence ends and the next begins: a name may hold `1. one`."""

_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def clean(text: str) -> str:
    """Return text from a log or a person without escape codes, control characters and line breaks."""
    bare = _ESCAPES.sub("", text)
    spaced = " ".join(bare.split())
    # printable text has none of the characters left out below, which take long to look at one by one
    if spaced.isprintable():
        return spaced
    kept = (char for char in spaced if unicodedata.category(char) not in _INVISIBLE and not _no_character(char))
    return "".join(kept).strip()


def _no_character(char: str) -> bool:
    """Return True for a code point that never is a character, and that XML cannot hold."""
    return ord(char) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(char) <= 0xFDEF  # noqa: PLR2004 - as Unicode lays it down


def plain(text: str) -> str:
    """Return text cleaned, with plain spaces instead of no-break ones, for other programs and for terminals."""
    return clean(text).replace(GAP, " ")


def clean_sentence(text: str) -> str:
    """Return a sentence from elsewhere, cleaned, with its numbers kept beside their units."""
    return _UNIT_AFTER_NUMBER.sub(GAP, clean(text))


def headline(text: str) -> tuple[str, str]:
    """Return what stands in large letters and what follows it: of a long text its first sentence alone."""
    first, *rest = _SENTENCE.split(text, maxsplit=1) if len(text) > _HEADLINE else (text,)
    return (f"{first}.", rest[0]) if rest else (text, "")


def shorten(text: str, length: int) -> str:
    """Return text of at most `length` characters, an ellipsis where it was cut."""
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def shorten_middle(text: str, length: int) -> str:
    """Return text of at most `length` characters, cut in its middle: what tells names apart is often their end."""
    tail = length // 2
    return text if len(text) <= length else f"{text[: length - tail - 1].rstrip()}…{text[-tail:].lstrip()}"


def terminal_width(text: str) -> int:
    """Return how many columns of a terminal text takes: wide letters and emoji take two, marks upon letters none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1
        for char in text
    )


def pad_to_width(text: str, width: int, *, right: bool = False) -> str:
    """Return text with spaces to a number of columns, behind it or (`right`) before it."""
    spaces = " " * (width - terminal_width(text))
    return f"{spaces}{text}" if right else f"{text}{spaces}"


def lower_first(text: str) -> str:
    """Return text as it stands within a sentence: its first letter small, unless it begins with an abbreviation."""
    return text if text[1:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 finding`, `1 200 rows`."""
    return f"{integer(count)} {noun}{'' if count == 1 else 's'}"


def join_words(words: list[str] | tuple[str, ...]) -> str:
    """Return words as a list in a sentence: `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else list(words))


def integer(value: float) -> str:
    """Return a whole number with thin gaps between thousands from 10 000 on."""
    digits = f"{value:,.0f}"
    return digits.replace(",", "") if len(digits) <= len("9,999") else digits.replace(",", GAP)


def number_decimals(value: float) -> int:
    """Return how many decimals `number` gives a value."""
    size = abs(value)
    return 0 if size >= 100 or size == 0 else 1 if size >= 10 else 2 if size >= 1 else 3  # noqa: PLR2004 - powers of ten


def number(value: float) -> str:
    """Return a plain number with about three significant digits and no exponent."""
    size = abs(value)
    if size == 0 or not math.isfinite(value):
        return "0" if value == 0 else NOT_RECORDED
    decimals = number_decimals(value)
    if round(size, decimals) == 0:
        return f"{'-' if value < 0 else ''}<0.001"
    return integer(value) if decimals == 0 else f"{value:.{decimals}f}"


def precise_decimals(value: float) -> int:
    """Return how many decimals `precise_number` gives a value: below 0.1 so many that three digits are shown."""
    size = abs(value)
    if size >= 0.1 or size < _FINEST:  # noqa: PLR2004 - from where three decimals say enough
        return number_decimals(value if size >= _FINEST else 0)
    return 2 - math.floor(math.log10(size))


def precise_number(value: float) -> str:
    """Return a number as `number` does, but one below 0.1 with three significant digits, as rates need them."""
    size = abs(value)
    if size < _FINEST:
        return "0"
    return number(value) if size >= 0.1 or not math.isfinite(value) else f"{value:.{precise_decimals(value)}f}"  # noqa: PLR2004 - as above


def _trimmed(text: str) -> str:
    return text.removesuffix(".0")


def percent(ratio: float, *, finely: bool = False) -> str:
    """Return a ratio in per cent, with a decimal below 10 % and from 98.5 % on, or wherever it is wanted `finely`."""
    value = ratio * 100
    if value != 0 and abs(value) < 0.05:  # noqa: PLR2004 - half of the last digit shown
        return f"<0.1{GAP}%"
    close = 0 < abs(value) < 9.95 or 98.5 <= abs(value) < 100 or (finely and value not in {0, 100})  # noqa: PLR2004 - per cent
    text = f"{value:.1f}" if close else f"{value:.0f}"
    return f"{'100' if text == '100.0' else text}{GAP}%"


def percent_formatter(ratios: Iterable[float | None]) -> Callable[[float], str]:
    """Return what prints shares that stand together: with a decimal in all of them where one has it."""
    texts = [percent(ratio) for ratio in ratios if ratio is not None]
    return partial(percent, finely=True) if any("." in text for text in texts) else percent


def percentage_points(ratio: float) -> str:
    """Return a difference of two ratios in percentage points, with its sign."""
    return f"{_signed(f'{ratio * 100:.1f}')}{GAP}points"


def _signed(text: str) -> str:
    """Return a number in words with its sign; one that rounds to nothing has none."""
    if text.startswith("-") and not any(digit in "123456789" for digit in text):
        return text[1:]
    return text if text.startswith("-") or text in {"0", "0.0"} else f"+{text}"


def signed(value: float) -> str:
    """Return a number with its sign; one too small to be shown is said to be that."""
    text = number(value)
    return "within ±0.001" if "<" in text else _signed(text)


def relative(difference: float, before: float | None) -> str:
    """Return a difference as a share of what was before, with its sign; empty where that was nothing."""
    return _signed(percent(difference / before)) if before and difference else ""


def elapsed(seconds: float) -> str:
    """Return a position in time since the start as h:min:s."""
    whole = round(seconds)
    return f"{whole // _HOUR}:{whole % _HOUR // _MINUTE:02d}:{whole % _MINUTE:02d}"


def duration(seconds: float) -> str:
    """Return a length of time in its two largest units: `1 min 37 s`; a position is what `elapsed` prints."""
    return phrases.duration(seconds).replace(" ", GAP)


def gpu_hours(seconds: float) -> str:
    """Return GPU-seconds as GPU-hours."""
    return f"{number(seconds / _HOUR)}{GAP}GPU-h"


def hours(value: float) -> str:
    """Return a number of hours as `number` does, a smaller one than 0.001 with its first digit."""
    size = abs(value)
    coarse = size >= 0.00095 or size < _FINEST or not math.isfinite(value)  # noqa: PLR2004 - rounds to 0.001
    return number(value) if coarse else f"{value:.{-math.floor(math.log10(size))}f}"


def memory(size: float) -> str:
    """Return bytes as GiB, or MiB below one GiB."""
    gib = size / 2**30
    return f"{number(gib)}{GAP}GiB" if abs(gib) >= 1 else f"{number(size / 2**20)}{GAP}MiB"


def throughput(rate: float) -> str:
    """Return bytes a second as GB/s, or MB/s below one GB/s, as links are rated."""
    gigabytes = rate / 1e9
    return f"{number(gigabytes)}{GAP}GB/s" if abs(gigabytes) >= 1 else f"{number(rate / 1e6)}{GAP}MB/s"


def clock(hertz: float) -> str:
    """Return a clock in MHz."""
    return f"{hertz / 1e6:.0f}{GAP}MHz"


def power(watts: float) -> str:
    """Return a power in watts."""
    return f"{number(watts)}{GAP}W"


def energy(joules: float) -> str:
    """Return an energy in kWh, or Wh below one kWh."""
    hours = joules / _HOUR
    return f"{number(hours / 1000)}{GAP}kWh" if hours >= 1000 else f"{precise_number(hours)}{GAP}Wh"  # noqa: PLR2004 - kilo


def money(amount: float, currency: str = "") -> str:
    """Return an amount of money with two decimals, more of a small one, and its currency where that is stated."""
    text = f"{amount:.2f}" if 1 <= abs(amount) < 10_000 else number(amount)  # noqa: PLR2004 - wide gaps from there on
    return f"{text}{GAP}{clean(currency)}" if currency else text


def temperature(celsius: float) -> str:
    """Return a temperature in °C."""
    return f"{_trimmed(f'{celsius:.1f}')}{GAP}°C"


_UNITS: dict[str, Callable[[float], str]] = {
    "1": percent,
    "s": duration,
    "Cel": temperature,
    "W": power,
    "By": memory,
    "By/s": throughput,
    "Hz": clock,
    "J": energy,
}


_COUNTED = ("", "rows")
"""Units of what is counted: a whole number of it has no decimals."""


def quantity(value: float | None, unit: str) -> str:
    """Return a value of a base unit in the unit people use for it."""
    if value is None or math.isnan(value):
        return NOT_RECORDED
    shown = _UNITS.get(unit)
    if unit in _COUNTED and value == round(value):
        return f"{integer(value)}{GAP}{clean(unit)}".rstrip()
    if unit == "1" and abs(value) >= _TIMES:
        text = f"{number(value)}{GAP}times"
    else:
        text = shown(value) if shown else f"{number(value)}{GAP}{clean(unit)}".rstrip()
    return _trimmed(text.replace(f".0{GAP}", GAP))


def or_not_recorded(value: float | None, shown: Callable[[float], str]) -> str:
    """Return the value as `shown` prints it, or that it was not recorded."""
    return NOT_RECORDED if value is None or math.isnan(value) else shown(value)
