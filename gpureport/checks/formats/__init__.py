"""What became of rules, as JSON, JUnit and Markdown.

Imports the rules and the wording and formats of a report.
A new form of a verdict is a module here.
"""
