"""GPU memory: how full it was, whether it kept growing, and whether it was held after the work had ended."""
