"""Data of a run that several sections need: label, device names, GPU time, events and readings."""
