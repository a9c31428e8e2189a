"""The job in a recording: when it ran, its stages, params, evaluations and checkpoints."""
