"""Comparisons of steps and groups, worded in `wording/words.toml`.

`figures` prints figures; `summary` builds the first screen, the table of steps and the charts; `pairs` compares
neighbouring steps; `study` compares groups.
"""
