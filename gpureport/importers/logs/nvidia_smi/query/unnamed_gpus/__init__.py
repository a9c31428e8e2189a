"""Rows in which no column names the GPU: told apart by their place among those of one tick."""
