"""Judging: what a recording shows of how its GPUs were used.

`analyze` turns a recording into series per device (`series`), finds the jobs in it (`job`), and runs the rules of
`rules` in their order. `account` then says where GPU time went, which finding follows from which and what was not
judged; `advice` says what to do. `rules.toml`, `kinds.toml` and `advice/steps.toml` hold limits and words, `results`
the types of what comes out.
"""

from gpureport.analysis.analyze import analyze, build_context, trace_gpu_time
from gpureport.analysis.rules import RULES

__all__ = ["RULES", "analyze", "build_context", "trace_gpu_time"]
