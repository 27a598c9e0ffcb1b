"""A bucket of an object store, by `obstore`, of which this is the door: names, bytes, and the built-in errors.

Invariants:

- The client is made where it is used first, and never in a process that was forked from one that has used it: its
  threads are not there then, and the first call would wait for ever.
- No credential is read here, or told: the client takes them from the environment. What a server says in an error may
  repeat them, so only its status and its code are passed on.
- An answer that doesn't come in `_SILENCE` is an error. Whether what it was about has been done is unknown then.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import chain
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import from_url

from twopc.errors import ConfigurationError
from twopc.storage.one_process import take_for_this_process

PART_BYTES = 8 * 1024 * 1024
"""The size of parts, a few of which go up at once; what is no larger goes up whole."""

_PARTS_AT_ONCE = 2
_SILENCE = timedelta(seconds=15)
_WHOLE_REQUEST = timedelta(minutes=10)
_RETRIES: Any = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=30),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=3), "base": 2},
}
_CLIENT_SETTINGS = (
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "proxy_url",
    "timeout",
    "read_timeout",
)


@dataclass(frozen=True, slots=True)
class Provider:
    """The provider that a scheme names: in messages, and in how the variables that its client reads begin."""

    name: str
    variables: str
    advice: str
    address: str
    """The variable that names another server than the provider's own; "" where there is none."""


PROVIDERS = {
    "s3": Provider(
        "S3",
        "AWS_",
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or the machine's role), AWS_REGION; for another server than "
        "Amazon's AWS_ENDPOINT_URL, and AWS_ALLOW_HTTP=true if that is at http://",
        "AWS_ENDPOINT_URL",
    ),
    "gs": Provider(
        "Google Cloud Storage",
        "GOOGLE_",
        "GOOGLE_APPLICATION_CREDENTIALS (or the machine's account)",
        "",
    ),
    "az": Provider(
        "Azure Blob Storage",
        "AZURE_",
        "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY (or an identity)",
        "AZURE_STORAGE_ENDPOINT",
    ),
}
"""By the scheme of their URLs."""


class Bucket:
    """One bucket (Azure: container), as this process sees it. No server is asked until a method is called."""

    def __init__(self, scheme: str, name: str) -> None:
        self.url = f"{scheme}://{name}"
        self.provider = PROVIDERS[scheme]

    def create(self, name: str, data: bytes) -> None:
        """Store what is not there yet; FileExistsError if it is, be it by an earlier try of this very call."""
        with self._built_in_errors(name):
            obstore.put(self._client, name, data, mode="create")

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Store these bytes, whatever is there: whole, or not at all."""
        source = iter(chunks)
        first, is_all = _first_part(source)
        with self._built_in_errors(name):
            if is_all:
                obstore.put(self._client, name, first, use_multipart=False)
            else:
                whole = chain([first], source)
                obstore.put(self._client, name, whole, chunk_size=PART_BYTES, max_concurrency=_PARTS_AT_ONCE)

    def get(self, name: str) -> bytes:
        with self._built_in_errors(name):
            return bytes(obstore.get(self._client, name).bytes())

    def open(self, name: str) -> tuple[int, Iterator[bytes]]:
        """Return the size of what is there, and its bytes, as they come."""
        with self._built_in_errors(name):
            found = obstore.get(self._client, name)
            return int(found.meta["size"]), self._chunks(name, found)

    def _chunks(self, name: str, found: Any) -> Iterator[bytes]:
        with self._built_in_errors(name):
            for chunk in found.stream(min_chunk_size=PART_BYTES // 8):
                yield bytes(chunk)

    def names(self, folder: str) -> Iterator[str]:
        """Yield all names below a folder, '' or ending in '/', in whatever order."""
        with self._built_in_errors(folder):
            for page in obstore.list(self._client, prefix=folder or None):
                for found in page:
                    yield str(found["path"])

    def parts(self, folder: str) -> Iterator[str]:
        """Yield the first parts of the names below a folder, without it."""
        with self._built_in_errors(folder):
            found = obstore.list_with_delimiter(self._client, folder or None)
        for name in (*found["common_prefixes"], *(each["path"] for each in found["objects"])):
            yield str(name).removeprefix(folder).strip("/")

    def delete(self, name: str) -> None:
        """Delete what is there; FileNotFoundError if nothing is, from the servers that say so."""
        with self._built_in_errors(name):
            obstore.delete(self._client, name)

    def place(self, name: str) -> str:
        return f"{self.url}/{name}".rstrip("/")

    @cached_property
    def _client(self) -> Any:
        take_for_this_process("an object store")
        try:
            return from_url(self.url, client_options=self._client_options(), retry_config=_RETRIES)
        except (BaseError, ValueError) as error:
            raise ConfigurationError(
                f"{self.url} can't be opened: {_first_line(error)}; see {self.provider.advice}"
            ) from None

    def _client_options(self) -> Any:
        """Our own limits, and what the environment says of the connection, which goes before."""
        options: dict[str, Any] = {"read_timeout": _SILENCE, "timeout": _WHOLE_REQUEST}
        for name in _CLIENT_SETTINGS:
            if value := os.environ.get(f"{self.provider.variables}{name.upper()}"):
                options[name] = value.lower() == "true" if name.startswith("allow_") else value
        return options

    @property
    def _server(self) -> str:
        """The provider's name, and the address where that is not its own."""
        address = os.environ.get(self.provider.address)
        return f"{self.provider.name} at {_without_login(address)}" if address else self.provider.name

    @contextmanager
    def _built_in_errors(self, name: str) -> Iterator[None]:
        """Raise the built-in errors in place of the client's."""
        place = self.place(name)
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, _answer(error), place) from None
        except AlreadyExistsError:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), place) from None
        except BaseError as error:
            raise self._built_in(error, place) from None

    def _built_in(self, error: BaseError, place: str) -> OSError:
        answer = _answer(error)
        match answer[:3]:
            case "401" | "403":
                return PermissionError(
                    errno.EACCES, f"{self.provider.name} refuses: {answer}; see {self.provider.advice}", place
                )
            case "404":
                return FileNotFoundError(errno.ENOENT, answer, place)
            case _:
                text = f"{self._server} has given no good answer: {answer}; see {self.provider.advice}"
                return OSError(errno.EIO, text, place)


def _first_part(chunks: Iterator[bytes]) -> tuple[bytes, bool]:
    """Take as much as goes up in one request, or a little more; say whether that is all."""
    taken, size = [], 0
    for chunk in chunks:
        taken.append(chunk)
        size += len(chunk)
        if size > PART_BYTES:
            return b"".join(taken), False
    return b"".join(taken), True


def _without_login(url: str) -> str:
    return re.sub(r"//[^/@]*@", "//", url)


_STATUS = re.compile(r"status code: (\d{3}[A-Za-z ]*)")
_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,60})</Code>")


def _answer(error: Exception) -> str:
    """Say what the server answered, or why there was no answer, without what may be secret."""
    text = str(error)
    status, code = _STATUS.search(text), _CODE.search(text)
    if status is not None:
        return status[1].strip() + (f" ({code[1]})" if code is not None else "")
    return _first_line(error).rpartition(" - ")[2]


def _first_line(error: Exception) -> str:
    """The client's own words; a URL's query, which may hold a signature, is left out."""
    return re.sub(r"\?\S+", "", str(error).partition("\n")[0])[:300]
