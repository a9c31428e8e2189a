"""Means, quantiles and differences of series, with their uncertainty.

Imports no other room of the comparison.
A new estimator is a module here; what it says of steps goes to `verdicts`.
"""
