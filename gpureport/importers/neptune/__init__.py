"""Neptune: `stored` and `live` give `Stored` runs, `hardware` rows of their series, `runs` recordings."""
