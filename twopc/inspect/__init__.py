"""Look into completed checkpoints from Python: read only, without a job, a coordinator or a broker.

with open_checkpoint("latest", checkpoint_dir="checkpoints", job="flights") as checkpoint:
    checkpoint.positions, checkpoint.transactions
    counts = checkpoint.state("count")
    counts.get("LGA")
    for entry in counts.scan("L"):
        print(entry.partition, entry.key, entry.value)

with open_checkpoint(7) as old, open_checkpoint(8) as new:
    changes = list(diff(old, new))
"""

from twopc.inspect.checkpoint import Checkpoint, Transaction, open_checkpoint
from twopc.inspect.difference import Change, ChangeKind, Difference, diff
from twopc.inspect.entry import StateEntry
from twopc.inspect.state import State, StateSize

__all__ = [
    "Change",
    "ChangeKind",
    "Checkpoint",
    "Difference",
    "State",
    "StateEntry",
    "StateSize",
    "Transaction",
    "diff",
    "open_checkpoint",
]
