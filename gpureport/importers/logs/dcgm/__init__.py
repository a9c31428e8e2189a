"""What DCGM records: `dcgmi dmon`, tables of its fields as CSV, and Prometheus' answers about dcgm-exporter."""

from gpureport.importers.logs.dcgm.importer import Dcgm

__all__ = ["Dcgm"]
