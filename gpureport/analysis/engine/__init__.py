"""What happens around the rules: their order and selection, root causes, attribution of GPU time, what was not judged.

Imports everything below it; no detector and no advice.
A new step of `analyze` is a module here, called in `analysis/__init__.py`.
"""
