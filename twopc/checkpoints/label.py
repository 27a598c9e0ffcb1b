"""What a checkpoint may be called by whoever asks for it, and the words that mean one by themselves."""

from __future__ import annotations

from twopc.errors import ConfigurationError
from twopc.protocol.ids import checked_name
from twopc.protocol.layout import checkpoint_of_folder

LATEST = "latest"
NONE = "none"


def checked_label(label: str) -> str:
    """Return a label by which a checkpoint can be found again; raise ConfigurationError for one that means another."""
    checked_name("label", label)
    if label in (LATEST, NONE) or checkpoint_of_folder(f"chk-{label.removeprefix('chk-')}") is not None:
        raise ConfigurationError(f"label {label!r} can't be used: where a checkpoint is named, it means another one")
    return label
