"""What `gpustat --json` writes, one document or many one below the other."""

from gpureport.importers.logs.gpustat.gpustat_json import Gpustat

__all__ = ["Gpustat"]
