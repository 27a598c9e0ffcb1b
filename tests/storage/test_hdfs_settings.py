"""What the environment says of HDFS, on a real one: a name service, and who this process is there."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from twopc.errors import ConfigurationError
from twopc.storage.open import open_store
from twopc.testing.hadoop import write_site
from twopc.testing.local_hdfs import LocalHdfs
from twopc.testing.ports import free_port

Client = pytest.importorskip("hdfs_native", reason="HDFS needs the extra twopc-streams[hdfs]").Client

pytestmark = [pytest.mark.broker, pytest.mark.proof, pytest.mark.xdist_group("hdfs")]

ENTRY = "ledger/000000000001.json"


@pytest.fixture
def name_service(hdfs_server: LocalHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """One of two name nodes, of which the first is gone, by the configuration that the environment names."""
    service = "dfs.namenode.rpc-address.streams"
    addresses = {f"{service}.nn1": f"127.0.0.1:{free_port()}", f"{service}.nn2": f"127.0.0.1:{hdfs_server.port}"}
    names = {"dfs.nameservices": "streams", "dfs.ha.namenodes.streams": "nn1,nn2"}
    write_site(tmp_path / "core-site.xml", {"fs.defaultFS": "hdfs://streams"})
    write_site(tmp_path / "hdfs-site.xml", names | addresses)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    return f"hdfs://streams/prefix/{uuid.uuid4()}"


def test_a_name_service_is_used_though_the_first_of_its_name_nodes_is_gone(
    name_service: str, hdfs_server: LocalHdfs
) -> None:
    store = open_store(name_service).within("job")
    store.prepare()
    store.create_once(ENTRY, b"fact")
    store.put([("files/a", b"bytes")])
    path = name_service.removeprefix("hdfs://streams/")
    assert open_store(hdfs_server.url(path)).within("job").names() == ["files/a", ENTRY]
    with pytest.raises(FileExistsError):
        open_store(name_service).within("job").create_once(ENTRY, b"another's")


def test_who_this_process_is_there_comes_from_the_environment_and_owns_what_it_stores_alone(
    hdfs_server: LocalHdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = f"homes-{uuid.uuid4()}"
    administrator = Client(hdfs_server.url("").rstrip("/"))
    administrator.mkdirs(f"/{base}/streams", 0o755, True)
    administrator.set_owner(f"/{base}/streams", "streams", "streams")
    monkeypatch.setenv("HADOOP_USER_NAME", "streams")
    url = hdfs_server.url(f"{base}/streams/checkpoints")
    store = open_store(url).within("job")
    store.prepare()
    store.create_once(ENTRY, b"fact")
    status = administrator.get_file_info(f"/{base}/streams/checkpoints/job/{ENTRY}")
    assert (status.owner, oct(status.permission)) == ("streams", "0o600")
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    with pytest.raises(ConfigurationError, match=r"checkpoints can't be kept in .*AccessControlException.*this user"):
        open_store(url).within("job").prepare()
    with pytest.raises(PermissionError, match=r"AccessControlException.*HADOOP_USER_NAME"):
        open_store(url).within("job").get(ENTRY)
