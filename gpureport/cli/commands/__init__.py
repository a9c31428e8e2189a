"""One module a command: its options, its help, and the call of what does the work.

Imports the rooms beside it.
A new command: one module here named as the command, one line in `main.py`.
"""
