"""Reads MLflow runs: `stores` reads databases and folders, `server` the REST API, and `runs` builds recordings."""
