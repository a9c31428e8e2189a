"""Each module converts the content to one format, as text or bytes."""
