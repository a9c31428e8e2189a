"""What a recording says of its job: when it ran, its phases and stages, its params, checkpoints and precision.

Imports `series` and `rules`.
A new question about the job itself is a module here.
"""
