"""Each module converts the content to one format, as text or bytes; `report/__init__.py` lists them."""
