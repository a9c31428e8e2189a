"""The content of a report as values. Every format prints them, and JSON uses their field names."""
