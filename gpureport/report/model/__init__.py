"""The content of a report, which every format prints; JSON uses the field names."""
