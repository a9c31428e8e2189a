"""Analyses how the GPUs in a recording were used.

`analyze` builds each device's series (`series`), finds jobs (`job`), and runs the `rules`. `account` classifies and
prices GPU time, and links findings; `advice` recommends steps. Limits and wording are in TOML files.
"""

from gpureport.analysis.analyze import analyze, build_context, trace_gpu_time
from gpureport.analysis.rules import RULES

__all__ = ["RULES", "analyze", "build_context", "trace_gpu_time"]
