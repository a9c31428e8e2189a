"""MLflow: `stores` reads its database and folder, `server` its REST API, and `runs` turns a run into a recording."""
