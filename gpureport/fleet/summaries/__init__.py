"""From one stored run to its summaries, and the file that keeps them.

Imports `analysis`, `store` and `gpu_summary`; knows one run at a time.
A new figure of a GPU is a field of `GpuSummary`, a column in `summary_table` and a line in `run_summary`.
"""
