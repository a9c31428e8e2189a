"""GPUs that did nothing: idle gaps within a job, gaps that recur, and time before and after its work."""
