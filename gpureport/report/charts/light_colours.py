"""Replaces stand-in colours by the light theme, for formats without a style sheet."""

from matplotlib.artist import Artist
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from gpureport.report.charts.palette import COLOURS, DARK_TEXT

_LIGHT_COLOURS = {colour.stand_in: DARK_TEXT if colour.fixed == "currentColor" else colour.fixed for colour in COLOURS}


def apply_light_colours(figure: Figure) -> None:
    """Replace every stand-in by the colour it stands for; call it once the figure is laid out."""
    for artist in figure.findobj():
        _recolour(artist)


def _recolour(artist: Artist) -> None:
    if isinstance(artist, Patch):
        edge, face = to_hex(artist.get_edgecolor()), to_hex(artist.get_facecolor())
        if edge in _LIGHT_COLOURS:
            artist.set_edgecolor(_LIGHT_COLOURS[edge])
        if face in _LIGHT_COLOURS and artist.get_fill():
            artist.set_facecolor(_LIGHT_COLOURS[face])
    elif isinstance(artist, Line2D | Text):
        colour = to_hex(artist.get_color())
        if colour in _LIGHT_COLOURS:
            artist.set_color(_LIGHT_COLOURS[colour])
