"""Reports: `build` makes the content, one renderer per format prints it, and `write` writes the files.

Importing this package loads no renderer, and none of the libraries that content and renderers need.
"""

from typing import TYPE_CHECKING

from gpureport.report.formats.output import FORMATS, render, write

if TYPE_CHECKING:
    from gpureport.report.sections.builder import build

__all__ = ["FORMATS", "build", "render", "write"]


def __getattr__(name: str) -> object:
    """Import `build` on first access, because it loads NumPy and pyarrow."""
    if name != "build":
        raise AttributeError(name)
    from gpureport.report.sections import builder

    return builder.build
