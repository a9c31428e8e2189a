"""Tries settings of a training job: repeated recordings in random order, and the decision that they support."""
