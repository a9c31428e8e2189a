"""Tables of GPUs: figures, clocks, stages and energy."""
