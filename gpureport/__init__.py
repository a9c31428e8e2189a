"""Reads the GPU logs a training run left behind and says where the GPU time went, and why.

The command line is `gpureport`. From Python, `read` returns recordings, `analyze` says what can be said of one,
`compare` sets several side by side, and `report` writes what either found.
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
    """The package, whose function `report` stays when the package of the same name is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "report":
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Load the API when it is used: it needs NumPy and pyarrow, which `import gpureport` must not load."""
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(import_module("gpureport.api"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
