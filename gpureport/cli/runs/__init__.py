"""Runs read or taken from the store, grouped into steps, and analysed.

Imports `sources`, `options` and `messages`.
What several commands do to runs before they judge them goes here.
"""
