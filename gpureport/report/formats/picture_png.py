"""The figures of a report in one PNG file, for programs without SVG."""

import typst

from gpureport.report.formats import pdf, picture_svg
from gpureport.report.model.report_content import Report

_SOURCE = b"""#set page(width: auto, height: auto, margin: 0pt)
#image(bytes(sys.inputs.picture), format: "svg", width: 900pt)"""
_DPI = 144.0  # two pixels per point


def render(report: Report) -> bytes:
    paths = pdf.find_shipped_fonts()
    svg = pdf.replace_missing_characters(picture_svg.render(report), paths)
    held = typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=[paths[0].parent])
    content: bytes = typst.compile(_SOURCE, format="png", ppi=_DPI, font_paths=held, sys_inputs={"picture": svg})
    return content
