"""GPUs side by side: figures, clocks, stages, and energy."""
