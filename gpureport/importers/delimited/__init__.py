"""Delimited text with a header, read in pieces: what the importers of CSV-like logs share."""
