"""The stored form of a fact: a JSON envelope of format version, kind, body, and the SHA-256 of the body's text.

Reading checks all four, so that a truncated, flipped or foreign file is refused by name and never read as less data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from twopc.errors import CheckpointCorrupted, ForeignFile, NewerFormat
from twopc.protocol.canonical import canonical
from twopc.protocol.codec import Mismatch, Newer, from_json

T = TypeVar("T")

FORMAT_VERSION = 1


_HEAD = b'{"body":'


def _tail(kind: str, digest: str) -> bytes:
    """What follows the body's text in the stored form, which is canonical JSON too: its names are in order."""
    return f',"format":{FORMAT_VERSION},"kind":"{kind}","sha256":"{digest}"}}\n'.encode()


def encode_fact(kind: str, body: Mapping[str, Any]) -> bytes:
    """Return the stored form of a fact."""
    text = canonical(body)
    return _HEAD + text + _tail(kind, hashlib.sha256(text).hexdigest())


def open_fact(data: bytes, source: str) -> tuple[str, dict[str, Any]]:
    """Return kind and body of a stored fact; raise CheckpointCorrupted, naming `source`, if it can't be trusted."""
    try:
        envelope = json.loads(data)
        version, kind, digest, body = envelope["format"], envelope["kind"], envelope["sha256"], envelope["body"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointCorrupted(f"{source} is not a stored fact of this program, or it was damaged") from error
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise NewerFormat(f"{source} has format {version}; this version of twopc reads format {FORMAT_VERSION}")
    if version != FORMAT_VERSION:
        raise CheckpointCorrupted(f"{source} has format {version}; this version of twopc reads format {FORMAT_VERSION}")
    if not (isinstance(body, dict) and _is_word(kind) and _is_word(digest)):
        raise CheckpointCorrupted(f"{source} is not a stored fact of this program, or it was damaged")
    tail = _tail(kind, digest)
    if not (data.startswith(_HEAD) and data.endswith(tail)):
        raise CheckpointCorrupted(f"{source} was damaged, or edited: it is not as this program writes it")
    if hashlib.sha256(data[len(_HEAD) : -len(tail)]).hexdigest() != digest:
        raise CheckpointCorrupted(f"{source} was damaged: its SHA-256 does not match its contents")
    return kind, body


def _is_word(found: object) -> bool:
    return isinstance(found, str) and found.isascii()


def decode_fact(kind: str, data: bytes, source: str) -> dict[str, Any]:
    """Return the body of a stored fact of this kind; raise CheckpointCorrupted as `open_fact` does."""
    found, body = open_fact(data, source)
    if found != kind:
        raise ForeignFile(f"{source} holds a {found!r} where a {kind!r} belongs")
    return body


def decode_body(of: type[T], body: Any, kind: str, source: str) -> T:
    """Return the value that the body of a stored fact holds; raise CheckpointCorrupted that names what is wrong.

    It is NewerFormat for what is whole, and has something in it that this version doesn't know.
    """
    try:
        return from_json(of, body)
    except Newer as error:
        raise NewerFormat(
            f"{source} was stored by a newer twopc: the {kind!r} in it {error}; use that version, or a newer one"
        ) from error
    except Mismatch as error:
        raise CheckpointCorrupted(f"{source} lacks what a {kind!r} holds, or it was damaged: {error}") from error
