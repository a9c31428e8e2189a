"""GPUs side by side: figures, clocks, stages, energy, and the timeline."""
