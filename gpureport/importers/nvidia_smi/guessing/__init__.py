"""What the columns of an nvidia-smi log without a header hold, found out from their cells."""
