"""Metrics and health of a running job: in the format of Prometheus, over HTTP.

All of it is asked of the coordinator when somebody scrapes, or counted from its events: the data path does nothing
more for it. Names are Flink's where Flink has one, in Prometheus's form (decision 0045).
"""
