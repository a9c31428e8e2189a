"""GPUs that work only part of the time, or never."""
