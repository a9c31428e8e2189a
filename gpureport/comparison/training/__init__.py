"""Training metrics as they are compared: their curves, which way is better, and the value to reach.

Imports settings, columns and the names of metrics.
What is measured from a training log without knowing its step goes here.
"""
