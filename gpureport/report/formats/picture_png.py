"""The charts of steps and the timeline alone, as a PNG file, for programs that take no SVG."""

import warnings
from io import BytesIO

import numpy as np
import numpy.typing as npt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imsave

from gpureport.report.charts import canvas, light_colours, report_pictures
from gpureport.report.charts.palette import LIGHT_TEXT
from gpureport.report.model.report_content import Report

_DPI = 144
"""Two pixels a point."""


def render(report: Report) -> bytes:
    """Return the charts of steps and the timeline of every run, one below the other, on white."""
    rows = [_rasterise(picture.figure) for picture in report_pictures.draw_report_pictures(report)]
    about = {"Software": f"gpureport {report.version}", "Title": report.title}
    stream = BytesIO()
    imsave(stream, np.vstack(rows), format="png", dpi=_DPI, metadata=about)
    return stream.getvalue()


def _rasterise(figure: Figure) -> npt.NDArray[np.uint8]:
    """Return a figure as pixels (height, width, 4)."""
    pixels = FigureCanvasAgg(figure)
    figure.set_dpi(_DPI)
    figure.patch.set(visible=True, facecolor=LIGHT_TEXT)
    with warnings.catch_warnings(), canvas.chart_settings():
        # a letter that no installed font has is drawn as an empty box
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        # what an axis consists of is there only once it was laid out
        figure.draw_without_rendering()
        light_colours.apply_light_colours(figure)
        pixels.draw()  # type: ignore[no-untyped-call]  # matplotlib's canvas has no types
    return np.asarray(pixels.buffer_rgba()).copy()  # type: ignore[no-untyped-call]  # as above
