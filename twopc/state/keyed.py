"""State by key, as operators use it, on a backend; it lives with the input partition that its key came from."""

from __future__ import annotations

from collections.abc import Sequence

from twopc.kafka.topic_partition import TopicPartition
from twopc.state.backend import Family, StateBackend
from twopc.state.layout import operator_key, state_prefix


class _Prefixes(dict[TopicPartition, bytes]):
    """The key prefix of one state in each partition, made when first asked for."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __missing__(self, partition: TopicPartition) -> bytes:
        prefix = self[partition] = state_prefix(partition, self._name)
        return prefix


class KeyedState:
    """Values by state name, input partition and key, in columns: the store that `stateful_map` asks for."""

    def __init__(self, backend: StateBackend) -> None:
        self._backend = backend
        self._prefixes: dict[str, _Prefixes] = {}

    def get_many(self, name: str, partition: TopicPartition, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none, in order."""
        prefix = self._prefixes_of(name)[partition]
        return self._backend.get_many(Family.KEYED, [prefix + key for key in keys])

    def put_many(
        self, name: str, partition: TopicPartition, keys: Sequence[bytes], values: Sequence[bytes | None]
    ) -> None:
        """Write the value of each key, all or none; a value of None deletes the key."""
        prefix = self._prefixes_of(name)[partition]
        self._backend.put_many(Family.KEYED, list(zip(map(prefix.__add__, keys), values, strict=True)))

    def frozen(self) -> bool:
        """Say whether a write would wait for a snapshot that is being written."""
        return self._backend.frozen()

    def _prefixes_of(self, name: str) -> _Prefixes:
        found = self._prefixes.get(name)
        if found is None:
            found = self._prefixes[name] = _Prefixes(name)
        return found


class OperatorState:
    """One value per operator and subtask, restored to the subtask of the same index."""

    def __init__(self, backend: StateBackend) -> None:
        self._backend = backend

    def get(self, name: str) -> bytes | None:
        """Return the stored value of this name, None if there is none."""
        return self._backend.get_many(Family.OPERATOR, [operator_key(name)])[0]

    def put(self, name: str, value: bytes) -> None:
        """Store the value of this name."""
        self._backend.put_many(Family.OPERATOR, [(operator_key(name), value)])
