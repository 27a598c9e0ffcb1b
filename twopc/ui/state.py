"""The state of a key in a job's latest checkpoint, ready for JSON."""

from __future__ import annotations

import threading

from twopc.inspect import open_checkpoint
from twopc.inspect.key_text import KeyForm, parse_key
from twopc.inspect.rows import row_of
from twopc.storage.store import CheckpointStore
from twopc.ui.timeline import Row

_ONE_AT_A_TIME = threading.Lock()
"""Each opens a checkpoint, and may bring its files from an object store."""


def states_of(store: CheckpointStore, job: str) -> Row:
    """Return the names of the states in the latest checkpoint, and how each is encoded."""
    with _ONE_AT_A_TIME, open_checkpoint("latest", checkpoint_dir=store.identity, job=job) as opened:
        states = [{"state": name, "serde": str(opened.serde(name) or "")} for name in opened.states]
        return {"checkpoint_id": opened.checkpoint_id, "states": states}


def state_of_key(store: CheckpointStore, job: str, state: str, key: str, form: KeyForm) -> Row:
    """Return the entry of a key under each partition number; raise ConfigurationError for what there is not."""
    wanted = parse_key(key, form)
    with _ONE_AT_A_TIME, open_checkpoint("latest", checkpoint_dir=store.identity, job=job) as opened:
        return {
            "checkpoint_id": opened.checkpoint_id,
            "entries": [row_of(entry) for entry in opened.state(state).find(wanted)],
        }
