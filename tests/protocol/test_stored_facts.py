"""Whatever bytes stand where a fact should: they are that fact, or they are refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.errors import CheckpointCorrupted, NewerFormat
from twopc.protocol import envelope
from twopc.protocol.attempt_facts import AttemptEnded
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.codec import to_json
from twopc.protocol.envelope import encode_fact, open_fact
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.protocol.ledger_checks import check_metadata
from twopc.protocol.ledger_facts import ENTRY_TYPES, METADATA_KIND, CheckpointCompleted
from twopc.protocol.ledger_place import NOTHING_BEFORE, LedgerPlace
from twopc.protocol.ledger_state import SUMMARY_KIND, decode_entry, encode_entry
from twopc.protocol.manifest import Manifest

PLACE = LedgerPlace("orders", 1, NOTHING_BEFORE, "me")
ENTRY = encode_entry(AttemptEnded(AttemptId(1), True, "done"), PLACE)
NAMES = st.sampled_from(
    ["place", "fact", "job", "number", "previous", "attempt", "checkpoint_id", "committables", "completed", "record",
     "confirmed", "snapshots", "positions", "state", "files", "key_count", "ended", "last_reserved", "reason"]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
BODIES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6))
KINDS = st.sampled_from([SUMMARY_KIND, *(each.KIND for each in ENTRY_TYPES)])


def record(data: bytes) -> CheckpointCompleted:
    return CheckpointCompleted(CheckpointId(1), AttemptId(1), CheckpointKind.PERIODIC, sha256(data).hexdigest(), ())


def refusal(read: Callable[[], object]) -> str | None:
    """Why it is refused; None if it is not."""
    try:
        read()
    except CheckpointCorrupted as error:
        return str(error)
    return None


@given(kind=KINDS, fact=BODIES)
def test_an_entry_of_any_shape_with_the_right_digest_is_read_or_refused_by_name(kind: str, fact: Any) -> None:
    data = encode_fact(kind, {"place": to_json(PLACE), "fact": fact})
    assert "here.json" in (refusal(lambda: decode_entry(data, "here.json")) or "here.json")


@given(body=st.dictionaries(NAMES, BODIES, max_size=8))
def test_metadata_of_any_shape_with_the_right_digest_is_read_or_refused_by_name(body: dict[str, Any]) -> None:
    data = encode_fact(METADATA_KIND, body)
    with pytest.raises(CheckpointCorrupted, match=r"orders/chk-1/metadata\.json"):
        check_metadata("orders", record(data), data)


@given(body=st.dictionaries(NAMES, BODIES, max_size=4))
def test_a_manifest_of_any_shape_with_the_right_digest_is_read_or_refused_by_name(body: dict[str, Any]) -> None:
    data = encode_fact("state-manifest", body)
    assert "here.json" in (refusal(lambda: Manifest.decode(data, "here.json")) or "here.json")


def body_of(entry: bytes) -> tuple[str, dict[str, Any]]:
    return open_fact(entry, "here.json")


def test_what_an_older_version_left_out_has_its_default() -> None:
    kind, body = body_of(ENTRY)
    del body["fact"]["aborted"]
    assert decode_entry(encode_fact(kind, body), "here.json")[1] == AttemptEnded(AttemptId(1), True, "done")


@pytest.mark.parametrize(
    ("kind", "more"),
    [("attempt-ended", {"colour": 1}), ("attempt-painted", {})],
    ids=["a field", "a kind of entry"],
)
def test_what_only_a_newer_version_knows_is_newer_and_not_damaged(kind: str, more: dict[str, Any]) -> None:
    _, body = body_of(ENTRY)
    stored = encode_fact(kind, body | {"fact": body["fact"] | more})
    with pytest.raises(NewerFormat, match=r"^here\.json was stored by a newer twopc: .*; use that version"):
        decode_entry(stored, "here.json")


@given(data=st.binary(max_size=200))
def test_any_bytes_are_refused_by_name(data: bytes) -> None:
    with pytest.raises(CheckpointCorrupted, match=r"here\.json"):
        open_fact(data, "here.json")


@given(number=st.integers(0, len(ENTRY) - 1), bit=st.integers(0, 7))
def test_any_flipped_bit_is_refused_by_name(number: int, bit: int) -> None:
    damaged = bytearray(ENTRY)
    damaged[number] ^= 1 << bit
    with pytest.raises(CheckpointCorrupted, match=r"here\.json"):
        decode_entry(bytes(damaged), "here.json")


@given(size=st.integers(0, len(ENTRY) - 1))
def test_any_lost_tail_is_refused_by_name(size: int) -> None:
    with pytest.raises(CheckpointCorrupted, match=r"here\.json"):
        decode_entry(ENTRY[:size], "here.json")


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"format":' + b"9" * 10_000 + b"}", b'{"a":' * 50_000])
def test_what_would_exhaust_a_parser_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(CheckpointCorrupted, match=r"here\.json"):
        open_fact(data, "here.json")


@pytest.mark.parametrize("kind", ["checkpoint-metadata", "state-manifest", "attempt-ended"])
def test_a_fact_of_a_newer_format_is_refused_with_both_versions(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(envelope, "FORMAT_VERSION", 2)
        data = encode_fact(kind, {})
    with pytest.raises(CheckpointCorrupted, match=r"here\.json has format 2; this version of twopc reads format 1"):
        open_fact(data, "here.json")


def test_what_a_person_has_formatted_is_not_what_was_stored() -> None:
    with pytest.raises(CheckpointCorrupted, match="edited"):
        decode_entry(json.dumps(json.loads(ENTRY), indent=1).encode(), "here.json")


def test_metadata_of_another_job_is_refused_by_name() -> None:
    stored = CheckpointMetadata("trains", CheckpointId(1), AttemptId(1), 1, CheckpointKind.PERIODIC, 0, 0, ())
    data = encode_fact(METADATA_KIND, to_json(stored))
    with pytest.raises(CheckpointCorrupted, match=r"orders/chk-1/metadata\.json is checkpoint 1 of job 'trains'"):
        check_metadata("orders", record(data), data)


def test_metadata_is_encoded_once_and_a_changed_copy_anew() -> None:
    metadata = CheckpointMetadata("trains", CheckpointId(1), AttemptId(1), 1, CheckpointKind.PERIODIC, 0, 0, ())
    assert metadata.stored is metadata.stored
    assert metadata.stored == encode_fact(METADATA_KIND, to_json(metadata))
    assert replace(metadata, label="named").stored == encode_fact(METADATA_KIND, to_json(metadata) | {"label": "named"})
    assert replace(metadata) == metadata
