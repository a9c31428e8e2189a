"""Rules that are still classes."""
