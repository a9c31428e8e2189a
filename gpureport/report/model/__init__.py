"""The content of a report as values; every format prints them, and JSON has them by field name."""
