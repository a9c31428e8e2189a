"""The page on many runs in each format, and the one place that writes it.

Imports `page`, `fleet_report`, and the charts and formats of the report; no format imports another.
A new format is one module with `render`, and one line in `fleet_output`.
"""
