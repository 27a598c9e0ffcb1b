"""The contract of a source, and every source that keeps it."""
