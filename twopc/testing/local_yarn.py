"""A real YARN on loopback: a ResourceManager, and a NodeManager that starts containers as processes of this machine.

Its scheduler is YARN's own (CapacityScheduler), with one queue. `environment()` is what a driver needs to find it, and
to be a small one there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.request import ProxyHandler, Request, build_opener

from twopc.java import find_java
from twopc.spark_home import spark_jars
from twopc.testing.broker_settings import LOOPBACK
from twopc.testing.daemon import await_servers, inherited_environment
from twopc.testing.hadoop import HadoopDaemon, write_site
from twopc.testing.ports import free_ports

QUEUE = "streams"
READY_SECONDS = 180.0
_RESOURCE_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_NODE_MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
_PORTS = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
_SPARK_DEFAULTS = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.memoryOverhead": "128m",
    "spark.yarn.am.memory": "256m",
    "spark.yarn.am.memoryOverhead": "128m",
    # Each run would send half a gigabyte of jars to its containers otherwise, which find them here.
    "spark.yarn.jars": f"local:{spark_jars()}/*",
}
_CAPACITY = {
    "yarn.scheduler.capacity.root.queues": QUEUE,
    f"yarn.scheduler.capacity.root.{QUEUE}.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}


class LocalYarn:
    """Use it as a context: it takes applications inside. `variables` are those that every container inherits."""

    def __init__(self, folder: Path, *, variables: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._variables = dict(variables or {})
        ports = zip(_PORTS, free_ports(len(_PORTS)), strict=True)
        self._addresses = {name: f"{LOOPBACK}:{port}" for name, port in ports}
        conf = folder / "hadoop-conf"
        java = {"JAVA_HOME": str(find_java().resolve().parent.parent)}
        environment = inherited_environment() | java | self._variables
        self._manager = HadoopDaemon(_RESOURCE_MANAGER, conf, folder / "resourcemanager", environment)
        self.node = HadoopDaemon(_NODE_MANAGER, conf, folder / "nodemanager", environment)

    def __enter__(self) -> Self:
        conf = self._folder / "hadoop-conf"
        write_site(conf / "core-site.xml", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(self._folder / "tmp")})
        write_site(conf / "capacity-scheduler.xml", _CAPACITY)
        write_site(conf / "yarn-site.xml", self._yarn_site())
        try:
            self._manager.start()
            self.node.start()
            await_servers("YARN", (self._manager, self.node), self._has_node, READY_SECONDS)
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End both daemons. A container ends when it has lost its application's driver."""
        self.node.kill()
        self._manager.kill()

    def environment(self) -> dict[str, str]:
        """Variables to add to the environment of a driver whose master is `yarn`."""
        conf = self._folder / "spark-conf"
        conf.mkdir(exist_ok=True)
        lines = "".join(f"{name} {value}\n" for name, value in _SPARK_DEFAULTS.items())
        (conf / "spark-defaults.conf").write_text(lines)
        folders = {"HADOOP_CONF_DIR": str(self._folder / "hadoop-conf"), "SPARK_CONF_DIR": str(conf)}
        return folders | self._variables | {"SPARK_LOCAL_IP": LOOPBACK}

    def applications(self) -> list[dict[str, Any]]:
        """The applications that YARN has had, in the order of their ids."""
        known = (self._ask("apps").get("apps") or {}).get("app", [])
        return sorted(known, key=lambda application: str(application["id"]))

    def kill_application(self, application_id: str) -> None:
        """End an application with all of its containers, as `yarn application -kill` does."""
        self._ask(f"apps/{application_id}/state?user.name=root", {"state": "KILLED"})

    def _yarn_site(self) -> dict[str, str]:
        manager = {f"yarn.resourcemanager.{name}": address for name, address in self._addresses.items()}
        node = dict.fromkeys(("address", "localizer.address", "webapp.address"), f"{LOOPBACK}:0")
        return manager | {
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "100",
            "yarn.scheduler.minimum-allocation-mb": "128",
            **{f"yarn.nodemanager.{name}": address for name, address in node.items()},
            "yarn.nodemanager.bind-host": LOOPBACK,
            "yarn.nodemanager.hostname": LOOPBACK,
            "yarn.nodemanager.resource.memory-mb": "4096",
            "yarn.nodemanager.resource.cpu-vcores": "8",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.pmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
            "yarn.nodemanager.local-dirs": str(self._folder / "local"),
            "yarn.nodemanager.log-dirs": str(self._folder / "container-logs"),
            "yarn.nodemanager.env-whitelist": ",".join(("JAVA_HOME", "PATH", "LANG", *self._variables)),
        }

    def _has_node(self) -> bool:
        try:
            nodes = (self._ask("nodes").get("nodes") or {}).get("node", [])
        except (OSError, ValueError):
            return False
        return any(node["state"] == "RUNNING" for node in nodes)

    def _ask(self, path: str, put: Mapping[str, str] | None = None) -> dict[str, Any]:
        url = f"http://{self._addresses['webapp.address']}/ws/v1/cluster/{path}"
        body = None if put is None else json.dumps(put).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = Request(url, body, headers, method="GET" if put is None else "PUT")
        with build_opener(ProxyHandler({})).open(request, timeout=10) as answer:
            status: dict[str, Any] = json.load(answer)
            return status
