"""Colours of figures, style sheets and PDFs."""

from typing import NamedTuple

COLOURS = {
    "muted": "#6b7480",
    "grid": "#d5dae0",
    "track": "#e8edf2",
    "busy": "#0072b2",
    "paper": "#ffffff",
    "event": "#8a3fa0",
    "bar": "#9ccbe8",
    "alert": "#a33a00",
    "host": "#d97a3a",
    "span": "#f6ebe5",
    "problem": "#d55e00",
    "warning": "#e69f00",
    "info": "#7a8694",
}
"""Colours by meaning, used where no style sheet applies."""
LIGHT_TEXT, DARK_TEXT = "#ffffff", "#14181c"


class ClassFill(NamedTuple):
    """How a class of GPU time is drawn: colour, hatch in matplotlib notation, and text colour."""

    colour: str
    hatch: str = ""
    text: str = DARK_TEXT


# Okabe and Ito's colours suit all types of vision; hatches distinguish classes without colour
CLASSES = {
    "computing": ClassFill(COLOURS["busy"], text=LIGHT_TEXT),
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
SHARED = COLOURS | {
    "accent": "#005a8e",
    "accent_dark": "#6cbcf0",
    "busy_dark": "#56b4e9",
    "good_text": "#00694b",
    "good_ground": "#e4f4ee",
    "bad_text": "#a83a00",
    "bad_ground": "#fdece3",
    "warning_text": "#7a5200",
}
"""Colours available to templates. `accent` is for links and gains."""
