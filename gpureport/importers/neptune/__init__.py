"""Reads Neptune runs: `stored` and `live` find them, `hardware` turns series into rows, `runs` builds recordings."""
