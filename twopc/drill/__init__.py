"""Practised recovery: restores a saved checkpoint of a real job beside it, or breaks the job on purpose, and judges.

Invariant: nothing of the real job is touched. Whatever a drill writes has a name that begins with `scratch.PREFIX`:
topics, consumer group, transactional ids; and a folder of its own. Real topics and real checkpoints are only read, and
the broker is only asked about real transactions.
"""
