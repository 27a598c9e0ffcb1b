"""The state that survives a crash: a subtask's state backend, and the storage that checkpoints go to."""
