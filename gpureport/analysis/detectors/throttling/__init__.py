"""Clocks held down by heat, by hardware, by a power limit, or by a person."""
