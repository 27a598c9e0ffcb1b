"""Look into completed checkpoints from Python: read only, without a job, a coordinator or a broker.

with open_checkpoint("latest", checkpoint_dir="checkpoints", job="flights") as checkpoint:
    checkpoint.positions, checkpoint.transactions, checkpoint.times
    counts = checkpoint.state("count")
    counts.get("LGA")
    for entry in counts.scan("L"):
        print(entry.state.operator, entry.partition, entry.key, entry.value)

with open_checkpoint(7) as old, open_checkpoint(8) as new:
    changes = list(diff(old, new))
"""

from twopc.checkpoints.times import CheckpointTimes
from twopc.inspect.checkpoint import Checkpoint, Transaction, open_checkpoint
from twopc.inspect.difference import ChangeKind, Difference, KeyChange, diff
from twopc.inspect.entry import StateEntry
from twopc.inspect.state import State, StateSize
from twopc.protocol.times import SubtaskTimes
from twopc.state.layout import StateName

__all__ = [
    "ChangeKind",
    "Checkpoint",
    "CheckpointTimes",
    "Difference",
    "KeyChange",
    "State",
    "StateEntry",
    "StateName",
    "StateSize",
    "SubtaskTimes",
    "Transaction",
    "diff",
    "open_checkpoint",
]
