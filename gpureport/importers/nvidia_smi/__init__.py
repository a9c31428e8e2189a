"""What nvidia-smi writes: a form a module, and the fields that all forms share."""
