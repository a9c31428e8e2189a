"""Headlines, a maker for each kind of result.

`finding_headlines` chooses the worst finding. A new headline is a module here.
"""
