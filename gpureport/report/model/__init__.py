"""The content of a report. Every format prints it, and JSON uses its field names."""
