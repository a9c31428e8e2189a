"""Samples of a device with the time each owns, and what is computed of them."""
