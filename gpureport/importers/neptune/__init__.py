"""Runs of Neptune: exports of neptune-exporter, local folders of its clients, and servers of one's own.

A store gives `Stored` runs (`exports`, `local`, `live`); `runs` makes recordings of those that are meant, with the
devices that `hardware` makes of the series that `names` knows.
"""
