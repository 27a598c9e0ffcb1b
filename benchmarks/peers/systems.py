"""Every system that can be compared, by name."""

from __future__ import annotations

from peers.c_loop import CLoop
from peers.flink import Flink
from peers.kafka_streams import KafkaStreams
from peers.ours import Bare, Twopc, TwopcObjects, TwopcProcess
from peers.pyflink import PyFlink
from peers.quix import Quix
from peers.spark_sql import SparkSql
from peers.system import System

_OURS: tuple[System, ...] = (Bare(), CLoop(), Twopc(), TwopcProcess(), TwopcObjects())
_ALL: tuple[System, ...] = (*_OURS, Flink(), KafkaStreams(), SparkSql(), Quix(), PyFlink())

SYSTEMS = {system.name: system for system in _ALL}
