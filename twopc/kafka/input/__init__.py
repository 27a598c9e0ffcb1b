"""Topics read: planned on the driver, fetched and decoded on a subtask."""
