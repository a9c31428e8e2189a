"""Data about a run that several sections need, such as its label, GPU time and readings."""
