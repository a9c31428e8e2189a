"""Sampled series of a device, and arithmetic on them: time each sample stands for, bins, intervals, energy, statistics.

Imports metrics and recordings, no other room of the analysis.
A new computation on one series is a module here; what several families read out of series goes to `signals`.
"""
