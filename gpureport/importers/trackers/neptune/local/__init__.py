"""Folders that Neptune's clients leave on this machine."""
