"""Runs set side by side, step by step."""
