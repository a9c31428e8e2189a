"""What several commands do with analyses: write reports, hold them against limits.

Imports `runs`, `options` and `messages`.
What only one command does stays with the command.
"""
