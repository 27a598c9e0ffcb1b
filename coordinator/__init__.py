"""The control plane: issues checkpoints, records what is durable, notifies.

Two rules. It decides in pure code: `core` and what it imports know no clock, socket, file or thread. It stores, then
sends: `shell` publishes and sends what depends on a fact only after the fact is durable.

Start reading at `core`; then `attempt`, `checkpoint`, and the shell around them.
"""
