"""A run as the report sees it: its label, device names, GPU time, events and readings.

Imports `model` and `wording`.
What several sections need to know of a run goes here.
"""
