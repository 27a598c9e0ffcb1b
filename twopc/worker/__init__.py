"""The process of a subtask: how it is put together, and how it ends with its parent."""
