"""The samples behind the timelines, packed into the page for its script. Imports `charts`, `runs` and `wording`."""
