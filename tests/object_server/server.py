"""S3Proxy, a server that speaks S3 and keeps objects as files: fetched when a test first asks for it.

Its conditional create is atomic, its conditional replace is not, which no checkpoint store needs. Any server that takes
its place must pass `require_atomic_create`: there are some on which two creators win.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store

from twopc.java import find_java
from twopc.testing.broker_settings import LOOPBACK
from twopc.testing.jars import Jars, ensure_jars
from twopc.testing.ports import free_port

BUCKET = "checkpoints"

UNFINISHED = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""How names end that this server lists for a moment, while it writes an object, and that a store of objects has not."""

ACCESS_KEY, SECRET_KEY = "access-key-of-tests", "secret-key-of-tests"

S3PROXY = Jars(
    "s3proxy-4.1.0",
    "S3Proxy 4.1.0",
    55,
    """\
    <dependency org="org.gaul" name="s3proxy" rev="4.1.0" transitive="false">
      <artifact name="s3proxy" type="jar" ext="jar" classifier="jar-with-dependencies"/>
    </dependency>""",
    Path(__file__).with_name("s3proxy-4.1.0.sha256"),
)

_PROPERTIES = """\
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={access}
s3proxy.credential={secret}
s3proxy.endpoint=http://{host}:{port}
jclouds.provider=filesystem-nio2
jclouds.identity=unused
jclouds.credential=unused
jclouds.filesystem.basedir={data}
"""


class ObjectServer:
    """One server with one bucket; leaving the context ends it. What is in it outlives `kill` and `start`."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "data" / BUCKET).mkdir(parents=True)
        self._settings = folder / "s3proxy.properties"
        self._settings.write_text(
            _PROPERTIES.format(
                access=ACCESS_KEY, secret=SECRET_KEY, host=LOOPBACK, port=self.port, data=folder / "data"
            )
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    def start(self) -> None:
        (jar,) = ensure_jars(S3PROXY).glob("*.jar")
        light = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(find_java()), *light, "-jar", str(jar), "--properties", str(self._settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._wait_until_it_answers()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)

    def environment(self, port: int | None = None) -> Mapping[str, str]:
        """What a process needs to find it, or a proxy before it."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{LOOPBACK}:{port or self.port}",
            "AWS_ALLOW_HTTP": "true",
        }

    def url(self, prefix: str) -> str:
        return f"s3://{BUCKET}/{prefix}"

    def client(self) -> S3Store:
        """One of the tests' own, that goes past ours."""
        return S3Store(
            BUCKET,
            endpoint=f"http://{LOOPBACK}:{self.port}",
            access_key_id=ACCESS_KEY,
            secret_access_key=SECRET_KEY,
            region="us-east-1",
            client_options={"allow_http": True},
        )

    def names(self, prefix: str) -> list[str]:
        return [str(each["path"]) for each in obstore.list(self.client(), prefix=prefix).collect()]

    def require_atomic_create(self, rounds: int = 25, creators: int = 8) -> None:
        """Let creators race for names; AssertionError if one has several winners, or none."""
        clients = [self.client() for _ in range(creators)]
        together, won = threading.Barrier(creators), list[int]()

        def create(client: S3Store, own: int) -> None:
            for number in range(rounds):
                together.wait(60)
                with suppress(AlreadyExistsError):
                    obstore.put(client, f"races/{os.getpid()}-{number}", str(own).encode(), mode="create")
                    won.append(number)

        threads = [threading.Thread(target=create, args=(each, own)) for own, each in enumerate(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert sorted(won) == list(range(rounds)), "this server's create is not atomic: it can't judge a commit point"

    def _wait_until_it_answers(self) -> None:
        client, deadline = self.client(), time.monotonic() + 60
        while True:
            try:
                obstore.list(client).collect()
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return
