"""What sar, sadf, mpstat and pidstat write."""
