"""Tries settings of a job, for `gpureport try`.

`measure` reads a value from each run, and `decision` chooses a setting.
"""
