"""Findings as cards, their advice, and what could not be judged."""
