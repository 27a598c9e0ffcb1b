"""Queries of Spark's, whose drivers, tasks and brokers fail in every order: `twopc.spark.streaming.steps` decides."""
