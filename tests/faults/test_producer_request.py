"""A time-out is found in the request of a producer, whatever version and strings it has, and all else stays."""

from __future__ import annotations

import pytest
from kafka.protocol.producer import InitProducerIdRequest

from twopc.faults.producer_request import with_timeout

VERSIONS = range(5)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", [None, "t", "a-longer-name" * 20], ids=["none", "short", "long"])
@pytest.mark.parametrize("client", [None, "rdkafka"])
def test_the_timeout_is_another_and_all_else_as_it_was(version: int, name: str | None, client: str | None) -> None:
    assert with_timeout(encoded(version, name, client, 2_147_483_647), 5) == encoded(version, name, client, 5)


def test_tagged_fields_behind_the_header_are_passed_over() -> None:
    plain = encoded(4, "t", "me", 7)
    at = 2 + 2 + 4 + 2 + len("me")
    tagged = plain[:at] + b"\x01\x09\x03abc" + plain[at + 1 :]
    changed = with_timeout(tagged, 8)
    assert changed == tagged.replace((7).to_bytes(4, "big"), (8).to_bytes(4, "big"))


def encoded(version: int, name: str | None, client: str | None, timeout_ms: int) -> bytes:
    request = InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=timeout_ms, producer_id=-1, producer_epoch=-1
    )
    request.with_header(99, client)
    return bytes(request.encode(version=version, header=True))
