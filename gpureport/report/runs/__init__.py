"""Data about a run that several sections need: its label, device names, GPU time, events and readings."""
