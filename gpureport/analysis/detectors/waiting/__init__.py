"""GPUs that wait for the machine that feeds them: for its CPU, one of its cores, its storage, or the link to it."""
