"""Content of the pictures: where GPU time went, use over time, and signals of a GPU."""
