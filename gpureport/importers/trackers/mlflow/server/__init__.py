"""MLflow's server, read through its REST paths or its own client."""
