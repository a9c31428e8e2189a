"""One module or folder a format: content in, text or bytes out.

Imports `model`, `charts`, `samples` and `wording`; never another format.
A new format: one module with `render`, one line in `output.py`.
"""
