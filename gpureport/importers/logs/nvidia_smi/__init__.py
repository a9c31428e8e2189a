"""Logs that the nvidia-smi program wrote."""

from gpureport.importers.logs.nvidia_smi.importer import NvidiaSmi

__all__ = ["NvidiaSmi"]
