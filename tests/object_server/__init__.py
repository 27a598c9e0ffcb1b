"""A real server that speaks S3, on loopback, and what is done to it."""
