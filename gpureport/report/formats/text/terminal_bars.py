"""Bars of GPU time as characters: one sign a class, as many of it as its share of the longest bar."""

from collections.abc import Collection, Iterator, Sequence

from gpureport.report.model.head import Change
from gpureport.report.model.pictures import SpentBar, TimeSegment, TimeSpent
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Line, Page

_BLOCKS = {
    "computing": "█",
    "short_pauses": "▌",
    "hollow": "▚",
    "low_use": "▖",
    "throttled": "▓",
    "waiting_for_input": "▒",
    "idle": "░",
    "unused": "o",
    "held": "H",
    "startup": "·",
    "tail": "-",
    "gpu_lost": "x",
    "no_samples": "?",
}
_LETTERS = _BLOCKS | {
    "computing": "#",
    "short_pauses": "=",
    "hollow": "h",
    "low_use": "l",
    "throttled": "t",
    "waiting_for_input": "w",
    "idle": ".",
    "startup": "s",
}
_LABEL = 22
_SHORTEST = 10
"""Cells of the longest bar at least: where a page is too narrow, words at the right give way, then figures."""
_WORDS = 2
"""Place of the words at the right of a bar, after its total and its change."""
_GUTTER = 2
_VERDICT_STYLES = {"better": "better", "worse": "worse"}


def class_signs(page: Page) -> dict[str, str]:
    """Return the sign of each class of GPU time."""
    return _LETTERS if page.ascii else _BLOCKS


def count_cells(values: Sequence[float], cells: int) -> list[int]:
    """Return how many of `cells` each value gets by its share of their sum, by largest remainder."""
    total = sum(values)
    exact = [value / total * cells for value in values] if total else [0.0] * len(values)
    counts = [int(value) for value in exact]
    rest = sorted(range(len(exact)), key=lambda place: counts[place] - exact[place])
    for place in rest[: cells - sum(counts)] if total else ():
        counts[place] += 1
    return counts


def change_words(change: Change | None) -> tuple[str, str, str]:
    """Return a change, its verdict without what stands in brackets, and the style of both."""
    if change is None:
        return "", "", ""
    return change.text, change.verdict.partition(" (")[0], _VERDICT_STYLES.get(change.verdict, "")


def bar_lines(spent: TimeSpent, page: Page, most: int) -> Iterator[Line]:
    """Yield a bar a line with its total and change, the legend, and what is not drawn.

    Args:
        spent: the bars.
        page: where they have to fit.
        most: bars shown; of more than that the first ones, the worst and the last.
    """
    shown = _select_bars(spent.bars, most)
    label = min(max(display.terminal_width(bar.label) for bar in shown), _LABEL)
    total = "" if shared_total(spent) else None
    are_steps = measure_right(spent) > 0
    columns = [_right_columns(bar, total, are_steps=are_steps) for bar in shown]
    widths = [max(display.terminal_width(texts[place]) for texts in columns) for place in range(_WORDS + 1)]
    room = page.width - _GUTTER - label - 1
    for place in (_WORDS, 1):
        if room - _measure(widths) < _SHORTEST:
            widths[place] = 0
    length = max(room - _measure(widths), _SHORTEST)
    signs = class_signs(page)
    longest = max(sum(part.value for part in bar.segments) for bar in spent.bars)
    drawn: set[str] = set()
    for bar, texts in zip(shown, columns, strict=True):
        cells = _draw(bar.segments, longest, length, signs)
        drawn |= set(cells)
        start = f"{'':{_GUTTER}}{page.column(bar.label, label)} {cells:<{length}}"
        figure, *rest = (
            f"{'':{_GUTTER}}{display.pad_to_width(text, width, right=place < _WORDS)}" if width else ""
            for place, (text, width) in enumerate(zip(texts, widths, strict=True))
        )
        style = "worse" if bar.is_bad else change_words(bar.change)[2]
        yield Line(f"{start}{figure}", tail="".join(rest), tail_style=style)
    yield from _legend(_name_drawn(spent, shown, signs, drawn), page, _GUTTER + label + 1)
    hidden = len(spent.bars) - len(shown)
    left_out = f"{hidden} more: --detail full." if hidden else ""
    if spent.rest or left_out:
        yield from page.wrapped(" ".join(filter(None, (spent.rest, left_out))), _GUTTER, style="soft")


def measure_right(spent: TimeSpent) -> int:
    """Return how many columns the change from the step before takes at the right of the bars; 0 where none is told."""
    words = [change_words(bar.change) for bar in spent.bars]
    figures = max(display.terminal_width(text) for text, _, _ in words)
    verdicts = max(display.terminal_width(verdict) for _, verdict, _ in words)
    return figures + _GUTTER + verdicts if figures else 0


def shared_total(spent: TimeSpent) -> str:
    """Return the total that all bars have, where none has a change; empty where they differ."""
    totals = {bar.total for bar in spent.bars}
    return next(iter(totals)) if len(totals) == 1 and not measure_right(spent) else ""


def _measure(widths: Sequence[int]) -> int:
    """Return the columns that texts of these widths take, each with the gap before it."""
    return sum(width + _GUTTER for width in widths if width)


def _select_bars(bars: Sequence[SpentBar], most: int) -> Sequence[SpentBar]:
    if len(bars) <= most:
        return bars
    wanted = sorted(
        range(len(bars)), key=lambda place: (place not in {0, len(bars) - 1}, not bars[place].is_bad, place)
    )
    return [bars[place] for place in sorted(wanted[:most])]


def _right_columns(bar: SpentBar, total: str | None, *, are_steps: bool) -> tuple[str, str, str]:
    text, verdict, _ = change_words(bar.change)
    note = "" if are_steps and not bar.is_bad else bar.note
    return bar.total if total is None else total, text, verdict or note


def _draw(segments: Sequence[TimeSegment], longest: float, length: int, signs: dict[str, str]) -> str:
    values = [part.value for part in segments]
    cells = round(sum(values) / longest * length) if longest else 0
    counts = count_cells(values, cells)
    return "".join(signs.get(part.key, "+") * count for part, count in zip(segments, counts, strict=True))


def _name_drawn(
    spent: TimeSpent, bars: Sequence[SpentBar], signs: dict[str, str], drawn: Collection[str]
) -> dict[str, str]:
    """Return the signs of the classes that some bar shows and their names, in the order of the segments."""
    labels = {entry.key: entry.label for entry in spent.legend}
    labels |= {part.key: part.label for bar in bars for part in bar.segments if part.key not in labels}
    return {sign: label for key, label in labels.items() if (sign := signs.get(key, "+")) in drawn}


def _legend(names: dict[str, str], page: Page, indent: int) -> Iterator[Line]:
    """Yield what the signs stand for, a class and its sign never on two lines."""
    text = "   ".join(f"{sign}{display.GAP}{label.replace(' ', display.GAP)}" for sign, label in names.items())
    fits = indent + display.terminal_width(text) <= page.width
    yield from page.wrapped(text, indent if fits else _GUTTER, style="soft")
