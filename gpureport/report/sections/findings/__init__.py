"""Findings: rows and cards, what to do next, and what could not be judged."""
