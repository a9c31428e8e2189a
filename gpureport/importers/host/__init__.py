"""CPU and memory series of the machine the GPUs sit in, as CSV with a time stamp."""

from gpureport.importers.host.csv_log import HostCsv

__all__ = ["HostCsv"]
