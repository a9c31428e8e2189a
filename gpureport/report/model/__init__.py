"""The content of a report as values, which every format prints and JSON contains by field name."""
