"""A job beside the real one, for a benchmark or a drill: the same graph and steps, on topics of its own."""
