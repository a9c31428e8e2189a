"""From what is typed to runs that are not yet read: sources named, fetched, joined and labelled.

Imports `options` and `messages`.
What finds or names runs before they are read goes here.
"""
