"""One module or folder per format, which converts the content to text or bytes; `output` lists them."""
