"""Neptune: `stored` and `live` find runs, `hardware` turns their series into rows, and `runs` makes recordings."""
