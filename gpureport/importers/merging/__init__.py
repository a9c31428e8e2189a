"""Several logs of one run as one source: their devices, machines, overlaps and gaps.

Imports `protocol` and what is below it.
What concerns more than one log of a run goes here.
"""
