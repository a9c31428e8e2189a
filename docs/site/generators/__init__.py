"""What makes pages of the docs from the code: one module per page or kind of page."""
