"""The Python API. Add the name of a new function here and in `gpureport/__init__.py`."""

from gpureport.api.functions import analyze, compare, read, report
from gpureport.api.results import Analysis, Comparison
from gpureport.recording import Recording

__all__ = ["Analysis", "Comparison", "Recording", "analyze", "compare", "read", "report"]
