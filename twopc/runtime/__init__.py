"""The moving parts of a subtask; they know interfaces only, so the same loop runs on every host and in a simulation."""
