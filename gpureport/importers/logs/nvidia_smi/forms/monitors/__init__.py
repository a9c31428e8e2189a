"""What nvidia-smi's monitors and lists of processes write: dmon, pmon, stats, compute apps."""
