"""The table that plain `nvidia-smi` draws."""
