"""What findings come to: where GPU time went, which finding follows from which, what was not judged, and the cost."""
