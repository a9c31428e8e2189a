"""Logs that the nvidia-smi program wrote."""

from gpureport.importers.logs.nvidia_smi.query_gpu import NvidiaSmi

__all__ = ["NvidiaSmi"]
