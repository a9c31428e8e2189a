"""One module a command: the function that does it, loaded when it is called.

Imports the other rooms, and no other command. The help of a command is its entry in `table.py`.
A new command: one module here named as the command, and one entry there.
"""
