"""What may be said of two steps: whether they can be compared, how sure a difference is, what became of findings.

Imports `steps` and `statistics`.
A new judgement on two steps is a module here.
"""
