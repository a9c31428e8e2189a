"""Hardware and recording that fail: memory errors, lost GPUs, degraded links, gaps in the log."""
