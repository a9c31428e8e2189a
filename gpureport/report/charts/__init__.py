"""SVG figures; formats pass a width, pages pass none. Imports `model`, `runs` and `wording`."""
