"""Jobs that another kind of GPU would serve."""
