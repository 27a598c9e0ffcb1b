"""The public testing kit: a real broker on this machine or in a container, and helpers for topics and rows.

It is for users' tests and demos, for `twopc broker`, and for drills and benchmarks that start a broker of their own.
"""
