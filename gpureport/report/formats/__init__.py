"""One module or folder a format: content in, text or bytes out; `output` names the module of each."""
