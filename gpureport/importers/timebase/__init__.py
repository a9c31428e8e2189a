"""The clock of a log: time zones, daylight saving, the beat of a device, rows without stamps, the order of rows.

Imports the columns and errors only.
A new trait of clocks is a module here; where rows go because of it is decided in `ordering`.
"""
