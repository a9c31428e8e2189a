"""Reports: one content, `build`, and one renderer a format; `write` owns the files.

Importing this package loads no renderer, and none of the libraries that content and renderers need.
"""

from typing import TYPE_CHECKING

from gpureport.report.formats.output import FORMATS, render, write

if TYPE_CHECKING:
    from gpureport.report.sections.builder import build

__all__ = ["FORMATS", "build", "render", "write"]


def __getattr__(name: str) -> object:
    """Return what is loaded when it is first asked for: content needs NumPy and pyarrow, which a caller may not."""
    if name != "build":
        raise AttributeError(name)
    from gpureport.report.sections import builder

    return builder.build
