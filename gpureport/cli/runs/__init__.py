"""From what is typed to runs: sources read or taken from the store, grouped into steps, and analysed.

Imports `options` and `messages`.
What several commands do to runs before they judge them goes here.
"""
