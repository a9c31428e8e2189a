"""What `gpustat --json` writes, one document or many one below the other."""

from gpureport.importers.logs.gpustat.documents import Gpustat

__all__ = ["Gpustat"]
