"""Where the advice comes from."""

NEPTUNE = "neptune.ai blog, How to Optimize GPU Usage During Model Training"
CENTML = "CentML blog, The Power of GPUs in Deep Learning Models"
CLOUD = "Deep Learning and Cloud GPUs: How to Speed Up Model Training"
CLUSTER = "guide on optimising deep learning frameworks for GPU clusters"
TORCH_DATA = "PyTorch documentation, torch.utils.data"
TORCH_TUNING = "PyTorch documentation, Performance Tuning Guide"
TORCH_CUDA = "PyTorch documentation, CUDA semantics"
TORCH_COMPILE = "PyTorch documentation, torch.compile"
TORCH_CHECKPOINT = "PyTorch documentation, torch.distributed.checkpoint"
NVIDIA_PRECISION = "NVIDIA documentation, Train With Mixed Precision"
NVIDIA_DALI = "NVIDIA documentation, Data Loading Library (DALI)"
NVIDIA_SMI = "NVIDIA documentation, nvidia-smi"
NVIDIA_XID = "NVIDIA documentation, Xid Errors"
NVIDIA_MEMORY = "NVIDIA documentation, GPU Memory Error Management"
NCCL = "NVIDIA documentation, NCCL Troubleshooting"
JAX_MEMORY = "JAX documentation, GPU memory allocation"
"""What practitioners are told; the vendors' documentation where a step is one of theirs."""


def join_sources(*sources: str) -> str:
    """Return several sources as one text."""
    return "; ".join(sources)
