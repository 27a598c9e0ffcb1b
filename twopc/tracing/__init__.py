"""One trace a checkpoint, by OpenTelemetry, where somebody asks for it: off by default, and then it costs nothing.

Made of the events that every watcher of a job gets, when the checkpoint has ended (decision 0052).
"""
