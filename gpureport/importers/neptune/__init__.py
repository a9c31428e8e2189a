"""Reads Neptune runs: `stored` and `live` find runs, `hardware` builds rows, and `runs` builds recordings."""
