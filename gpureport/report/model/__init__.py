"""The content of a report, as values that every format shows.

Imports the findings and what is below them.
What a new section shows is a value here.
"""
