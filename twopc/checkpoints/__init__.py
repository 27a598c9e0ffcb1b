"""Completed checkpoints as they lie in storage: listed, named, checked, copied, packed."""
