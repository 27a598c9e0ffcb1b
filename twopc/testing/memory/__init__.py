"""A job's run inside one test: everything of production that decides, over topics and checkpoints in memory."""
