"""What nvitop's ResourceMetricCollector collects, written as CSV: the GPUs and their machine in one file."""

from gpureport.importers.logs.nvitop.collector_csv import Nvitop

__all__ = ["Nvitop"]
