"""The content of a report, as values that every format shows; JSON holds them name by name."""
