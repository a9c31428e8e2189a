"""What was read, and how the report came about."""
