"""What each step was worth: the gain, what was changed for it, and whether a finding had advised the change.

Imports `chain`, `verdicts`, `steps`, `statistics` and the advice of the analysis.
A new column of the table of gains is a field of `StepGain`.
"""
