"""Where rows belong in time when their stamps run backwards, repeat themselves, or lie far off.

Imports `devices`, `recorders` and `timebase`.
A new disorder of rows is a module here.
"""
