"""Benchmarks of a user's job: a generated load, the job on topics of its own, and what came of it, measured."""
