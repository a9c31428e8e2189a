"""CSV files of recorders that people write themselves, a few lines of psutil among them."""
