"""Empty figures with the settings that every chart shares, and figures written as SVG.

Sizes are in points of the figure, which are its SVG units. Text from logs is drawn as it is, never read as
mathematics.
"""

import warnings
from contextlib import AbstractContextManager
from io import StringIO

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from gpureport.report.charts import svg
from gpureport.report.charts.palette import INK

WIDTH = 900.0
WIDEST_LABELS = 190.0
_NARROWEST_LABELS = 70.0
_LETTER = 6.5
"""Points that a letter of a label takes."""

_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gpureport",
    "text.parse_math": False,
    "path.simplify": False,
    "hatch.linewidth": 0.7,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "text.color": INK.stand_in,
}


def chart_settings() -> AbstractContextManager[None]:
    """Return the context in which every figure is drawn."""
    return mpl.rc_context(_SETTINGS)  # type: ignore[arg-type]  # the stubs know each setting's name as a literal only


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure without a ground of its own, its size in points."""
    figure = Figure(figsize=(width / 72, height / 72))
    FigureCanvasSVG(figure)
    figure.patch.set_visible(False)
    return figure


def new_axes(figure: Figure, *, sides: tuple[float, float], top: float, bottom: float, pad: float) -> Axes:
    """Return plain axes with fixed margins in points, so that no layout has to be computed.

    Args:
        figure: where they stand.
        sides: margins left and right of them.
        top: margin above.
        bottom: margin below.
        pad: between the axes and their labels.
    """
    left, right = sides
    width, height = figure.get_figwidth() * 72, figure.get_figheight() * 72
    inner = (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
    axes = figure.add_axes(inner)
    axes.patch.set_visible(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(left=False, bottom=False, pad=pad)
    return axes


def label_margin(labels: list[str]) -> float:
    """Return the points that names beside the axes take."""
    return min(max(_LETTER * max(len(label) for label in labels) + 16, _NARROWEST_LABELS), WIDEST_LABELS)


def to_svg(figure: Figure, prefix: str, label: str) -> str:
    """Return a figure as an SVG element; `svg.slim_svg` says what the other arguments mean."""
    stream = StringIO()
    with warnings.catch_warnings(), chart_settings():
        # A font without a glyph only makes the measure of a label inexact: the reader's own font draws it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return svg.slim_svg(stream.getvalue(), prefix=prefix, label=label)
