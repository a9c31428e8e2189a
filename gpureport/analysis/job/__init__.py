"""What a recording says of its job: when it ran, its stages, params, evaluations and checkpoints."""
