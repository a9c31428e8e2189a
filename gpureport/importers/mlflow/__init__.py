"""Reads MLflow runs: `stores` uses databases and folders, `server` the REST API, and `runs` makes recordings."""
