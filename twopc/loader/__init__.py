"""Makes a job of a job file, here and in the workers."""
