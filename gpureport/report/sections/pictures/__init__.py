"""Content of the pictures of the open page: where GPU time went, use over time, and signals of the worst GPU."""
