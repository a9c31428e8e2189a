"""Neptune servers of one's own, read by a process of limited time."""
