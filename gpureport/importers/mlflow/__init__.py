"""MLflow: `stores` are its database and folder, `server` its REST API, `runs` what becomes of a run."""
