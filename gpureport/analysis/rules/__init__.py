"""What a rule is, what it may look at, and how it words certainty and figures.

Imports `series`.
What every rule needs goes here; what one family needs stays in its folder below `detectors`.
"""
