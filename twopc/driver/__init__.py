"""The driver: starts a coordinator or dials one, recovers, submits the subtasks, and again after a failure."""
