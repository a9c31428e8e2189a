"""Reads the GPU logs of a training run and shows where the GPU time went, and why.

The command-line tool is `gpureport`. In Python, `read` returns recordings, `analyze` analyses one, `compare` compares
several, and `report` writes a report on either result.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpureport.api import Analysis, Comparison, Recording, analyze, compare, read, report

__version__ = "0.2.0"
__all__ = ["Analysis", "Comparison", "Recording", "__version__", "analyze", "compare", "read", "report"]


class _Package(ModuleType):
    """Keeps the subpackage `report` from replacing the function `report`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "report":
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Load the API on first use: `import gpureport` must not load NumPy or pyarrow."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("gpureport.api"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
