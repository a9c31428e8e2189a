"""How well steps trained: training metrics at the end and at best, what changed, and the time to a target.

Imports `verdicts`, `steps` and `statistics`.
A new figure of quality is a module here; how it is worded belongs to the report.
"""
