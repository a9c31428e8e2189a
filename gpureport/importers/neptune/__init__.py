"""Reads Neptune runs: `stored` and `live` find them, `hardware` builds rows, and `runs` the recordings."""
