"""What a study says of groups: the best of them, what each setting did, and charts as small multiples.

Imports the comparison, `sections.comparison`, the model of the report and its wording; no format.
A new statement on all groups is a fact or a table of `study_content.py`.
"""
