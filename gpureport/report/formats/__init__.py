"""One module per format, which converts the content to text or bytes; `report/__init__.py` lists them."""
