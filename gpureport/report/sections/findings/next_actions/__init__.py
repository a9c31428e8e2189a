"""What to do next: words for each kind, measurements worth making, and which three come first."""
