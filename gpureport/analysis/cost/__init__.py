"""What a run cost by prices that a person states.

Imports `rules` and the settings.
Money, energy prices and carbon live here and nowhere else.
"""
