"""Generates pages of the docs from the code, with one module per page or kind of page."""
