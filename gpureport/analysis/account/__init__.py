"""What findings come to: where GPU time went, what follows from what, what was not judged, and the cost."""
