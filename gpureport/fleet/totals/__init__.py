"""From summaries to the report on all runs.

Imports `gpu_summary` and `fleet_report`, prices and the advice catalogue; reads no file.
A new part of the report is a module here, which takes summaries and returns values of `fleet_report`.
"""
