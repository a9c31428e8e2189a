"""Colours, in one place: of the figures, and what style sheets and papers share with them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Colour:
    """A meaning that has a colour.

    Attributes:
        fixed: what is written where no style sheet applies; `currentColor` follows the text around the figure.
        css: class by which a style sheet may set another one; empty where it must not.
    """

    fixed: str
    css: str = ""


INK = Colour("currentColor")
MUTED = Colour("#6b7480", "muted")
GRID = Colour("#d5dae0", "grid")
TRACK = Colour("#e8edf2", "track")
BUSY = Colour("#0072b2", "busy")
PAPER = Colour("#ffffff", "paper")
EVENT = Colour("#8a3fa0", "event")
BAR = Colour("#9ccbe8", "bar")
ALERT = Colour("#a33a00", "alert")
HOST = Colour("#d97a3a", "host")
SPAN = Colour("#f6ebe5", "span")
SEVERITY = {
    "problem": Colour("#d55e00", "problem"),
    "warning": Colour("#e69f00", "warning"),
    "info": Colour("#7a8694", "info"),
}
_COLOURS = (MUTED, GRID, TRACK, BUSY, PAPER, EVENT, BAR, ALERT, HOST, SPAN, *SEVERITY.values())

LIGHT_TEXT, DARK_TEXT = "#ffffff", "#14181c"


@dataclass(frozen=True, slots=True)
class ClassFill:
    """How a class of GPU time is drawn: its ground, the hatch on it as matplotlib writes it, and text on it."""

    colour: str
    hatch: str = ""
    text: str = DARK_TEXT


# Okabe and Ito's colours suit any colour vision; the hatch says the same without colour.
CLASSES = {
    "computing": ClassFill(BUSY.fixed, text=LIGHT_TEXT),
    "short_pauses": ClassFill("#9ccbee"),
    "hollow": ClassFill("#56b4e9", "oo"),
    "low_use": ClassFill("#f0e442", "\\\\"),
    "throttled": ClassFill("#cc79a7", "\\\\\\\\"),
    "waiting_for_input": ClassFill("#d55e00", "////"),
    "idle": ClassFill("#aeb4bf", ".."),
    "unused": ClassFill("#8f97a5", "xx"),
    "held": ClassFill("#78808f", "||"),
    "startup": ClassFill("#e69f00", "||"),
    "tail": ClassFill("#c9ced6", "--"),
    "gpu_lost": ClassFill("#3f3a4a", "xx", LIGHT_TEXT),
    "no_samples": ClassFill("#dde2e9", "//"),
    "no_job": ClassFill("#e8ecf1"),
}
OTHER_CLASS = ClassFill("#a9b1ba", "//--")
"""Fill of a class without one of its own."""

ACCENT = "#005a8e"
"""Links, gains and what else stands out of text, on a light ground."""

SHARED = {colour.css: colour.fixed for colour in _COLOURS} | {
    "accent": ACCENT,
    "accent_dark": "#6cbcf0",
    "busy_dark": "#56b4e9",
    "good_text": "#00694b",
    "good_ground": "#e4f4ee",
    "bad_text": "#a83a00",
    "bad_ground": "#fdece3",
    "warning_text": "#7a5200",
}
"""What templates of pages and papers read as `colours`, by meaning; `_dark` are those on a dark ground."""
