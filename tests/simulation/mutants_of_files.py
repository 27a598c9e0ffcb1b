"""A deliberate break of what says which stored files are needed: it deletes one that a kept checkpoint names."""

from __future__ import annotations

from coordinator.ledger import Ledger
from tests.simulation.mutants import Mutant, instead
from twopc.protocol.ids import CheckpointId
from twopc.protocol.layout import checkpoint_of_file

_IN_FILES = {"retained": 1, "inline_bytes": 0, "fault_phase_ms": 5_000}

_files_named = Ledger._files_named


def _of_their_own_checkpoint_only(ledger: Ledger, newest: CheckpointId) -> frozenset[str]:
    kept = {each.checkpoint_id for each in ledger.state.completed}
    return frozenset(name for name in _files_named(ledger, newest) if checkpoint_of_file(name) in kept)


MUTANTS_OF_FILES = (
    Mutant(
        "a shared file is deleted though a kept checkpoint names it",
        instead(Ledger, "_files_named", _of_their_own_checkpoint_only),
        _IN_FILES,
        seeds=500,
    ),
)
