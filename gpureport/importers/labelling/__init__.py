"""Whose a run is and where it ran: a table of jobs, and files of labels beside logs.

Imports `protocol` and what is below it; reads no series.
A new place where labels stand already goes here, as a reader that yields tags of `gpureport/label_tags.py`.
"""
