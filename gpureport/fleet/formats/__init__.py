"""The report on many runs as JSON, and as text for a terminal.

Imports `fleet_report` and the wording of reports; each format renders the report alone and touches no file.
"""
