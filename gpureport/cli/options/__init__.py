"""Options that several commands share, and how their values are read.

Imports click and the settings.
An option of one command stays with the command.
"""
