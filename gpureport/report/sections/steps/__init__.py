"""Comparisons of steps and groups, with wording from `words.toml`.

`figures` formats figures; `summary` builds the first screen, the table of steps and the charts; `pairs` compares
neighbouring steps; `study` compares groups.
"""
