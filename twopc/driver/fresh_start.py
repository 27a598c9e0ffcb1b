"""What it means to start with no checkpoint where input was read before, in words. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from twopc.source import Split


def emptied(states: Collection[str], splits: Sequence[Split], checkpoint_dir: str) -> str | None:
    """Say that states begin empty while reading goes on somewhere; None where nothing comes before what is read."""
    later = [split for split in splits if split.start > 0]
    if not states or not later:
        return None
    first = f"{later[0].partition}@{later[0].start}"
    more = f" (and in {len(later) - 1} more)" if len(later) > 1 else ""
    return (
        f"there is no checkpoint in {checkpoint_dir}: states ({', '.join(sorted(states))}) begin empty, and reading "
        f"begins at {first}{more}, where the source says. If the job ran before, name the --checkpoint-dir that it had"
    )
