"""Steps of an optimization side by side."""
