"""Faults for real processes: crash points by name, faults armed there, supervised processes, proxies."""
