"""Deliberate breaks of what says which stored files are there, and needed."""

from __future__ import annotations

from coordinator.ledger import Ledger, MissingSnapshot
from tests.simulation.mutants import Mutant, instead
from twopc.protocol.facts import SubtaskSnapshot
from twopc.protocol.ids import CheckpointId
from twopc.protocol.layout import checkpoint_of_file
from twopc.protocol.manifest import Manifest

_IN_FILES = {"retained": 1, "inline_bytes": 0, "fault_phase_ms": 5_000}

_files_named = Ledger._files_named
_require = Ledger._require


def _of_their_own_checkpoint_only(ledger: Ledger, newest: CheckpointId) -> frozenset[str]:
    kept = {each.checkpoint_id for each in ledger.state.completed}
    return frozenset(name for name in _files_named(ledger, newest) if checkpoint_of_file(name) in kept)


def _whether_there_or_not(ledger: Ledger, checkpoint_id: CheckpointId, snapshot: SubtaskSnapshot) -> Manifest:
    try:
        return _require(ledger, checkpoint_id, snapshot)
    except MissingSnapshot:
        return Manifest((), 0)


MUTANTS_OF_FILES = (
    Mutant(
        "what is acknowledged is not looked for",
        instead(Ledger, "_require", _whether_there_or_not),
        {"stored_elsewhere": 0.3, "inline_bytes": 0},
    ),
    Mutant(
        "a shared file is deleted though a kept checkpoint names it",
        instead(Ledger, "_files_named", _of_their_own_checkpoint_only),
        _IN_FILES,
        seeds=500,
    ),
)
