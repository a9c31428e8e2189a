"""SVG figures, shared by all formats. Imports `model`, `runs` and `wording`."""
