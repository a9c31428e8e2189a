"""Colours, in one place: of the figures, and what style sheets and papers share with them.

Of a figure each meaning has a stand-in while drawing, a fixed colour and a CSS class in the SVG.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Colour:
    """A meaning that has a colour.

    Attributes:
        stand_in: what the figure is drawn with, unlike any other colour.
        fixed: what is written where no style sheet applies; `currentColor` follows the text around the figure.
        css: class by which a style sheet may set another one; empty where it must not.
    """

    stand_in: str
    fixed: str
    css: str = ""


INK = Colour(stand_in="#010203", fixed="currentColor")
MUTED = Colour(stand_in="#010204", fixed="#6b7480", css="muted")
GRID = Colour(stand_in="#010205", fixed="#d5dae0", css="grid")
TRACK = Colour(stand_in="#010206", fixed="#e8edf2", css="track")
BUSY = Colour(stand_in="#010207", fixed="#0072b2", css="busy")
PAPER = Colour(stand_in="#010208", fixed="#ffffff", css="paper")

LIGHT_TEXT = "#ffffff"
DARK_TEXT = "#14181c"

SEVERITY = {
    "problem": Colour(stand_in="#010209", fixed="#d55e00", css="problem"),
    "warning": Colour(stand_in="#01020a", fixed="#e69f00", css="warning"),
    "info": Colour(stand_in="#01020b", fixed="#7a8694", css="info"),
}
"""Marks of findings."""

EVENT = Colour(stand_in="#01020c", fixed="#8a3fa0", css="event")
"""Marks of what the log says happened."""


BAR = Colour(stand_in="#01020d", fixed="#9ccbe8", css="bar")
"""Bars that an interval is drawn upon."""


ALERT = Colour(stand_in="#01020e", fixed="#a33a00", css="alert")
"""Lines and limits of what went wrong."""

HOST = Colour(stand_in="#010210", fixed="#d97a3a", css="host")
"""Areas of what the machine around the GPUs did."""

SPAN = Colour(stand_in="#01020f", fixed="#f6ebe5", css="span")
"""Ground of the stretches that a finding speaks of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFill:
    """How a class of GPU time is drawn.

    Attributes:
        colour: its ground.
        hatch: what lies on the ground, as matplotlib writes it; `class_patterns` draws the same in SVG.
        text: colour of text on it.
    """

    colour: str
    hatch: str = ""
    text: str = DARK_TEXT


# Okabe and Ito's colours suit any colour vision; the hatch says the same without colour.
CLASSES = {
    "computing": ClassFill(colour=BUSY.fixed, text=LIGHT_TEXT),
    "short_pauses": ClassFill(colour="#9ccbee"),
    "hollow": ClassFill(colour="#56b4e9", hatch="oo"),
    "low_use": ClassFill(colour="#f0e442", hatch="\\\\"),
    "throttled": ClassFill(colour="#cc79a7", hatch="\\\\\\\\"),
    "waiting_for_input": ClassFill(colour="#d55e00", hatch="////"),
    "idle": ClassFill(colour="#aeb4bf", hatch=".."),
    "unused": ClassFill(colour="#8f97a5", hatch="xx"),
    "startup": ClassFill(colour="#e69f00", hatch="||"),
    "tail": ClassFill(colour="#c9ced6", hatch="--"),
    "gpu_lost": ClassFill(colour="#3f3a4a", hatch="xx", text=LIGHT_TEXT),
    "no_samples": ClassFill(colour="#dde2e9", hatch="//"),
    "no_job": ClassFill(colour="#e8ecf1"),
}
"""Fill of each class of GPU time."""

OTHER_CLASS = ClassFill(colour="#a9b1ba", hatch="//--")
"""Fill of a class without one of its own."""

COLOURS = (INK, MUTED, GRID, TRACK, BUSY, PAPER, EVENT, BAR, ALERT, HOST, SPAN, *SEVERITY.values())
"""Every colour that has a stand-in."""

ACCENT = "#005a8e"
"""Links, gains and what else stands out of text, on a light ground."""

WORDS = {
    "good_text": "#00694b",
    "good_ground": "#e4f4ee",
    "bad_text": "#a83a00",
    "bad_ground": "#fdece3",
    "warning_text": "#7a5200",
}
"""Words of what is better, of what is worse or a problem, and of a warning, and what they stand on."""

SHARED = {colour.css: colour.fixed for colour in COLOURS if colour.css} | {
    "accent": ACCENT,
    "accent_dark": "#6cbcf0",
    "busy_dark": "#56b4e9",
    **WORDS,
}
"""What templates of pages and papers read as `colours`, by meaning; `_dark` are those on a dark ground."""
