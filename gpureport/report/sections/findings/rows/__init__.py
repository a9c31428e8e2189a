"""Rows of findings: one for each kind and cause, with its range over all runs and its caveats."""
