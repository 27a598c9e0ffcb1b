"""A real HDFS on loopback: a name node, and one data node that keeps every block once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Self
from urllib.request import ProxyHandler, build_opener

from twopc.errors import Unavailable
from twopc.testing.broker_settings import LOOPBACK
from twopc.testing.daemon import await_servers, inherited_environment
from twopc.testing.hadoop import HadoopDaemon, write_site
from twopc.testing.ports import free_ports

READY_SECONDS = 120.0
_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_STATE = "Hadoop:service=NameNode,name=FSNamesystemState"
_ADDRESSES = {
    "dfs.namenode.http-address": "namenode pages",
    "dfs.datanode.address": "data",
    "dfs.datanode.http.address": "datanode pages",
    "dfs.datanode.ipc.address": "datanode",
}


class LocalHdfs:
    """Use it as a context: it takes files inside. What is in it outlives `kill` and `start`."""

    def __init__(self, folder: Path) -> None:
        self.port, *ports = free_ports(1 + len(_ADDRESSES))
        self._folder = folder
        self._addresses = {name: f"{LOOPBACK}:{port}" for name, port in zip(_ADDRESSES, ports, strict=True)}
        conf = folder / "hadoop-conf"
        environment = inherited_environment()
        self.name_node = HadoopDaemon(_NAME_NODE, conf, folder / "namenode", environment)
        self.data_node = HadoopDaemon(_DATA_NODE, conf, folder / "datanode", environment)

    def __enter__(self) -> Self:
        conf = self._folder / "hadoop-conf"
        core = {"fs.defaultFS": f"hdfs://{LOOPBACK}:{self.port}", "hadoop.tmp.dir": str(self._folder / "tmp")}
        write_site(conf / "core-site.xml", core)
        write_site(conf / "hdfs-site.xml", self._hdfs_site())
        if self.name_node.run("-format", "-nonInteractive") != 0:
            raise Unavailable(f"HDFS could not be formatted; {self.name_node.log} says why")
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start what doesn't run; return when files can be written."""
        for daemon in (self.name_node, self.data_node):
            if daemon.pid is None:
                daemon.start()
        await_servers("HDFS", (self.name_node, self.data_node), self._takes_files, READY_SECONDS)

    def kill(self) -> None:
        """End both as a power cut would."""
        self.data_node.kill()
        self.name_node.kill()

    def url(self, path: str, port: int | None = None) -> str:
        """A checkpoint folder here, perhaps through a proxy before the name node."""
        return f"hdfs://{LOOPBACK}:{port or self.port}/{path}"

    def _hdfs_site(self) -> dict[str, str]:
        return self._addresses | {
            "dfs.namenode.name.dir": str(self._folder / "names"),
            "dfs.datanode.data.dir": str(self._folder / "data"),
            "dfs.replication": "1",
            "dfs.namenode.safemode.extension": "0",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.datanode.hostname": LOOPBACK,
            "dfs.heartbeat.interval": "1",
            # Small machines of tests may have little room: none is kept free.
            "dfs.datanode.du.reserved": "0",
        }

    def _takes_files(self) -> bool:
        """Whether the name node has left safe mode, and has a data node, as its own page says."""
        page = f"http://{self._addresses['dfs.namenode.http-address']}/jmx?qry={_STATE}"
        try:
            with build_opener(ProxyHandler({})).open(page, timeout=10) as answer:
                (state,) = json.load(answer)["beans"]
        except (OSError, ValueError):
            return False
        return bool(state["FSState"] == "Operational" and state["NumLiveDataNodes"] == 1)
