"""What a recording says of its job: when it ran, its phases, stages and params, its evaluations and checkpoints."""
