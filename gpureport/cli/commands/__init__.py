"""The functions that do the commands, in modules that are loaded when one of theirs is called.

A module imports other rooms, and no other module of commands; what only one command needs, that one imports.
A new command: a function in a module of its name here, and an entry with its help in `table.py`.
"""
