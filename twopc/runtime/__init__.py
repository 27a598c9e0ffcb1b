"""What moves inside a subtask; knows interfaces only, so the same loop runs on every host and in a simulation."""
