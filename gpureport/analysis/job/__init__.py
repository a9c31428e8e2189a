"""Facts about the job in a recording: when it ran, its stages, params, evaluations and checkpoints."""
