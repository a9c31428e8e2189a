"""All steps in order: each against the one before it and the first, as pairs and as groups.

Imports `quality`, `verdicts`, `steps` and `statistics`.
What looks at more than two steps, but not at scaling, goes here.
"""
