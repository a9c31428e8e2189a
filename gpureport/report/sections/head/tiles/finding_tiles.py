"""The tiles on the finding of the headline: its worst fact, then its effect."""

from collections.abc import Iterator

from gpureport.report.model.head import Change, Tile
from gpureport.report.model.pictures import SignalHistory, SignalPanel
from gpureport.report.sections.findings.found import Found
from gpureport.report.sections.findings.words import find_words, tell
from gpureport.report.sections.pictures.signals import CLOCK, POWER, Signal, format_number
from gpureport.report.wording import display

_USE = ("GPU use", "{mean}", "{gpus}", "For {length}")


def list_finding_tiles(found: Found, history: SignalHistory | None) -> Iterator[Tile]:
    """Yield the worst fact of a finding and its effect, where evidence or pictures hold them; at most two.

    Args:
        found: the findings that the headline tells of.
        history: the picture of the GPU concerned; None where there is none.
    """
    for words in find_words(found, "tiles", []):
        label, value, unit, context = (tell(found, text, now=True) for text in (_USE if words == "@use" else words))
        if unit[:1] == "~":
            value, _, own = value.rpartition(display.GAP)
            unit = own + unit[1:]
        if value:
            yield Tile(label=label, value=value, unit=_raise(unit, found), context=_raise(context, found))
    kind = found.finding.kind
    if history is not None and kind in {"thermal_throttle", "hw_throttle"}:
        yield from _list_slowed(found, history)
    power = _find_panel(history, POWER)
    if history is not None and kind == "hollow_util" and power is not None and power.meanwhile is not None:
        yield Tile(
            label=f"Power of {history.gpu} meanwhile",
            value=format_number(POWER, power.meanwhile),
            unit=POWER.unit,
            context=display.raise_first(power.limit_text),
        )


def _raise(text: str, found: Found) -> str:
    """Return a text; the name of the GPUs with a capital, as it begins a line."""
    return display.raise_first(text) if text == found.gpus else text


def _list_slowed(found: Found, history: SignalHistory) -> Iterator[Tile]:
    """Yield the clock before and while slowed."""
    fall, clock = tell(found, "{fall}"), _find_panel(history, CLOCK)
    if not fall or clock is None or clock.usual is None or clock.meanwhile is None or clock.meanwhile >= clock.usual:
        return
    yield Tile(
        label=f"Clock of {history.gpu} while {'hot' if found.finding.kind == 'thermal_throttle' else 'slowed'}",
        before=format_number(CLOCK, clock.usual),
        value=format_number(CLOCK, clock.meanwhile),
        unit=CLOCK.unit,
        change=Change(text=f"\N{MINUS SIGN}{fall}", arrow="down"),
        context=tell(found, "For {length}", now=True),
    )


def _find_panel(history: SignalHistory | None, signal: Signal) -> SignalPanel | None:
    """Return the panel of a quantity; None where the picture does not show it."""
    panels = history.panels if history is not None else ()
    return next((panel for panel in panels if panel.quantity == signal.label), None)
