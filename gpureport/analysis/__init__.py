"""Judging: what a recording shows of how its GPUs were used.

`analyze` makes series per device (`series`), finds jobs (`job`), and runs `rules`. `account` says where GPU time went,
what follows from what and what was not judged, `advice` what to do. TOML files hold limits and words.
"""

from gpureport.analysis.analyze import analyze, build_context, trace_gpu_time
from gpureport.analysis.rules import RULES

__all__ = ["RULES", "analyze", "build_context", "trace_gpu_time"]
