"""How a job file becomes a job, here and in the workers."""
