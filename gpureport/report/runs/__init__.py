"""What several sections need to know of a run: its label, device names, GPU time, events and readings."""
