"""Hadoop's servers on this machine: their jars, fetched once, their configuration, and what starts one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from twopc.java import find_java
from twopc.spark_home import spark_jars
from twopc.testing.daemon import STOP_SECONDS, Daemon
from twopc.testing.jars import Jars, ensure_jars

# That of PySpark's own client jars, which the servers use too.
VERSION = "3.5.0"
HADOOP = Jars(
    f"hadoop-{VERSION}",
    f"Apache Hadoop {VERSION}",
    66,
    f'''\
    <dependency org="org.apache.hadoop" name="hadoop-client-minicluster" rev="{VERSION}" conf="*->master"/>
    <dependency org="org.bouncycastle" name="bcprov-jdk18on" rev="1.82" conf="*->master"/>
    <dependency org="org.bouncycastle" name="bcpkix-jdk18on" rev="1.82" conf="*->master"/>
    <dependency org="org.bouncycastle" name="bcutil-jdk18on" rev="1.82" conf="*->master"/>''',
    Path(__file__).with_name(f"hadoop-{VERSION}.sha256"),
)
_JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
_LOG = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{1}: %m%n%ex{5}
"""


class HadoopDaemon(Daemon):
    """One of Hadoop's servers, whose configuration is in a folder that all of them share."""

    def __init__(self, main_class: str, conf: Path, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(folder, environment)
        self._main_class = main_class
        self._conf = conf

    def run(self, *arguments: str) -> int:
        """Run it to its end, as for `-format`; return its exit code."""
        return self._begin(self._command(arguments)).wait(STOP_SECONDS)

    def start(self, *arguments: str) -> None:
        """Start it, again after it was killed; return at once."""
        self._begin(self._command(arguments))

    def _command(self, arguments: Sequence[str]) -> list[str]:
        self.folder.mkdir(parents=True, exist_ok=True)
        logging = self.folder / "log4j2.properties"
        logging.write_text(_LOG)
        files = (f"-Dlog4j2.configurationFile={logging}", f"-Djava.io.tmpdir={self.folder}")
        options = (*_JVM_OPTIONS, *files, "-cp", class_path(self._conf))
        return [str(find_java()), *options, self._main_class, *arguments]


def class_path(conf: Path) -> str:
    """The class path of Hadoop's servers: their configuration, their jars, and PySpark's, with the client's."""
    return f"{conf}:{ensure_jars(HADOOP)}/*:{spark_jars()}/*"


def write_site(file: Path, properties: Mapping[str, str]) -> None:
    """Write a configuration as Hadoop reads it."""
    body = "".join(
        f"  <property><name>{name}</name><value>{escape(value)}</value></property>\n"
        for name, value in properties.items()
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"<configuration>\n{body}</configuration>\n")
