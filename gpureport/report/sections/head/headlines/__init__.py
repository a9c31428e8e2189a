"""The headline of steps."""
