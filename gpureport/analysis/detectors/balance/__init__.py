"""GPUs of one job that work differently from their peers."""
