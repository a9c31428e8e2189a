"""The samples behind the timelines, packed into the page.

Imports `runs` and `wording`.
Only what the page's script reads is packed here.
"""
