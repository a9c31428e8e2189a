"""What `gpureport explain` says of kinds, classes of GPU time, metrics, figures and recordings.

Imports `wording` and the analysis.
A new kind or metric is explained from its own attributes, without code here; a new figure by an entry here.
"""
