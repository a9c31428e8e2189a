"""What an importer and a tracker are, the options they take, and the account they give of every line.

Imports `decoding`, `values` and `timebase`; no importer.
What every importer must offer goes here.
"""
