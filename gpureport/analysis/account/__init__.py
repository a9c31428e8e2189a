"""Sums up an analysis: where GPU time went, which findings explain others, what was not judged, and the run's cost."""
