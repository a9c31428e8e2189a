"""SVG figures; each format passes its width, and a page none. Imports `model`, `runs` and `wording`."""
