"""The public testing kit: a real broker on this machine, helpers for topics, and later a simulated one.

It is for tests, demos and `twopc broker`; nothing else in the package imports it.
"""
