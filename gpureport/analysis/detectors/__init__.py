"""The rules: one folder a family of ways to lose GPU time, one module a kind or a group of kinds with one computation.

A family imports `series`, `job`, `signals` and `rules`, never another family.
A new detector: one module in its family, one line in RULES in `analysis/__init__.py`, one sample folder, one test.
"""
