"""PDF, set by typst."""
