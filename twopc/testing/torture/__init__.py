"""Torture: random faults from a seed, several a run, on real processes and real brokers. `make torture` runs it."""
