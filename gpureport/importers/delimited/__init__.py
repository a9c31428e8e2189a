"""Lines of delimited text to typed columns by the layout that a header declares.

Imports `decoding` and `values`.
What only nvidia-smi writes belongs to its importer, not here.
"""
