"""How far a topic was read, as checkpoints and groups keep it: what makes a position the same, cut, short or behind."""
