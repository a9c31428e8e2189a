"""Runs of Neptune: exports of neptune-exporter, local folders of its clients, and servers of one's own.

A store gives `Stored` runs (`exports`, `local_folders`, `live`); `selection` chooses among them, and `recording`
makes a recording of one, with the devices that `hardware` makes of the series that `names` knows.
"""

from gpureport.importers.neptune.selection import Neptune

__all__ = ["Neptune"]
