"""Where a process can be made to crash, by name."""
