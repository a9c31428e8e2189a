"""CPU, memory and process series of the machine the GPUs sit in, in the forms its tools write them."""

from gpureport.importers.logs.host.host_log import HostLog

__all__ = ["HostLog"]
