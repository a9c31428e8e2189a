"""Runs of Neptune: exports of neptune-exporter, local folders of its clients, and servers of one's own."""

from gpureport.importers.trackers.neptune.tracker import Neptune

__all__ = ["Neptune"]
