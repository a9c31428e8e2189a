"""`nvidia-smi -q`, as text and as XML."""
