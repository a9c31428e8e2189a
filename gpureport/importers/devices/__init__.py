"""Which GPU a row belongs to, and rows put together into the series of each GPU.

Imports `delimited`, `values` and `timebase`.
A new way to tell GPUs apart goes here.
"""
