"""Records written exactly once: from the claim of a name to the verdict on a transaction that a crash left."""
