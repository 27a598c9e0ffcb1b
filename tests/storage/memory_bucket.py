"""A bucket that the client keeps in memory: its ways and its errors, and no server."""

from __future__ import annotations

import obstore.store

from twopc.storage.bucket import Bucket


class MemoryBucket(Bucket):
    def __init__(self) -> None:
        super().__init__("s3", "memory")
        self.__dict__["_client"] = obstore.store.MemoryStore()
