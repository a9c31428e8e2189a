"""Runs that an experiment tracker recorded, and what all trackers share.

A tracker imports the rooms beside `trackers`, never another tracker.
A new tracker: one package here and one line in the registry in `protocol/registry.py`.
"""
