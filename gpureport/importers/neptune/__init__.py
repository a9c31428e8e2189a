"""Runs of Neptune: exports of neptune-exporter, local folders of its clients, and servers of one's own.

A store gives `StoredRun`s (`exports`, `client_log`, `scale`, `live`); `selection` chooses among them, and `recording`
makes a recording of one, with the devices that `hardware` makes of the series that `names` knows.
"""

from gpureport.importers.neptune.selection import Neptune

__all__ = ["Neptune"]
