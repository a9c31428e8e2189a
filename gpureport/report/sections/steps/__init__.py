"""Steps of an optimization and groups side by side, as blocks; what is said stands in `wording/words.toml`.

`figures` prints figures, `summary` has the first screen, the table of steps and charts, `pairs` gains and one step
against the one before, `study` groups and what steps say together.
"""
