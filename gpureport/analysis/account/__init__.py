"""Sums up findings: where GPU time went, which finding follows from which, what was not judged, and the cost."""
