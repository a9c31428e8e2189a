"""MLflow's stores on this machine: its SQLite database and its folder of files."""
