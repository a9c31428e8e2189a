"""CSV of `nvidia-smi --query-gpu`, the usual log: its headers, rows, messages and damage."""
