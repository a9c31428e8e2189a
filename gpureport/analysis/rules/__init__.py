"""What a rule is, how it describes its kinds of findings, what it may look at, and how it words certainty and figures.

Imports `series` and `results`.
What every rule needs goes here; what one family needs stays in its folder below `detectors`.
"""
