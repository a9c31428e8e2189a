"""Hardware series as Neptune's client and its monitoring recipe record them: read from Neptune, and from MLflow.

Imports the rooms beside `trackers`, never a tracker.
What a series means is a line in `series_meanings.py`.
"""
