"""What changed in the set-up between two steps, as far as it was recorded, and in which order that is told.

Imports `steps`.
A place where runs record how they were set up, a param, a tag or a word of the command line, is read here.
"""
