"""Several processes or machines that wrote into one log: whether they watched the same GPUs, and damaged names.

Imports `devices` and `timebase`.
"""
