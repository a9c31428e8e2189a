"""One module a command: its help, and the call of what does the work.

Imports the other rooms, and no other command.
A new command: one module here named as the command, one line in `main.py` and one in the table of `options.py`.
"""
