"""The Python API: what `import gpureport` offers.

Imports every room but the command line.
A new function: a module here, its name below and in `gpureport/__init__.py`.
"""

from gpureport.api.functions import analyze, compare, read, report
from gpureport.api.results import Analysis, Comparison
from gpureport.recording import Recording

__all__ = ["Analysis", "Comparison", "Recording", "analyze", "compare", "read", "report"]
