"""Two queries by `format("twopc-kafka")` as one process, to be killed; one that fails is started again in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.jvms import local_session
from tests.spark.streaming.query import counts, rows
from twopc.spark.streaming import register

STARTS = 6


def run_to_the_end(session: SparkSession, frame: DataFrame, mode: str, servers: str, topic: str, work: Path) -> None:
    writing = frame.writeStream.format("twopc-kafka").outputMode(mode).trigger(availableNow=True)
    writing = writing.option("kafka.bootstrap.servers", servers).option("topic", topic).option("name", topic)
    writing = writing.option("decisions", str(work / "decisions")).option("checkpointLocation", str(work / topic))
    for _ in range(STARTS):
        try:
            writing.start().awaitTermination()
        except StreamingQueryException as error:
            sys.stderr.write(f"{topic} is started again: {str(error).splitlines()[0]}\n")
            continue
        return
    raise SystemExit(f"{topic} did not come to its end in {STARTS} starts")


def main() -> None:
    servers, each_row, whole_table, work = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = local_session("query", "local[2,4]", **{"spark.sql.shuffle.partitions": "2"})
    register(session)

    def made(files_a_batch: int) -> DataFrame:
        return session.readStream.option("maxFilesPerTrigger", files_a_batch).text(str(Path(work) / "in"))

    run_to_the_end(session, counts(made(4)), "complete", servers, whole_table, Path(work))
    run_to_the_end(session, rows(made(2)), "append", servers, each_row, Path(work))
    session.stop()


if __name__ == "__main__":
    main()
