"""Findings: rows, cards and actions."""
