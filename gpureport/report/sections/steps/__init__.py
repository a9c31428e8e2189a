"""Comparisons of steps and groups, worded in `wording/words.toml`.

`figures` prints figures; `summary` has the first screen, table of steps and charts; `pairs` gains and neighbouring
steps; `study` groups.
"""
