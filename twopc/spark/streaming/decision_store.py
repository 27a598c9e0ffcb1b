"""The store of a query's decisions: each under a name that is created once.

<decisions>/<name>/query.json                     whose they are
<decisions>/<name>/batches/000000000007-1.json    the first decision about batch 7
"""

from __future__ import annotations

import re
from dataclasses import replace

from twopc.errors import ConfigurationError, Unavailable
from twopc.protocol.codec import to_json
from twopc.protocol.envelope import decode_body, decode_fact, encode_fact
from twopc.spark.streaming.decision import Decision, QueryOwner, StoredDecisions
from twopc.storage.open import open_store

KEPT_BATCHES = 100
"""As many as Spark keeps of its own log (spark.sql.streaming.minBatchesToRetain)."""

FORGET_EVERY = 20

_OWNER = "query.json"
_BATCHES = "batches/"
_DECISION = re.compile(rf"{_BATCHES}([0-9]{{12}})-([1-9][0-9]*)\.json")


class DecisionStore:
    """The decisions of one query. Used by its drivers, of which one at a time should be alive."""

    def __init__(self, where: str, name: str) -> None:
        store = open_store(where)
        self.place = store.place(name)
        self._root = store
        self._store = store.within(name)

    def claim_for(self, query: str) -> None:
        """Make this the place of the query with this id of Spark's; raise ConfigurationError if it is another's."""
        self._root.prepare()
        self._root.establish()
        self._store.establish()
        try:
            self._store.create_once(_OWNER, encode_fact(QueryOwner.KIND, to_json(QueryOwner(query))))
        except FileExistsError:
            owner = self._owner()
        else:
            return
        raise ConfigurationError(
            f"the decisions in {self.place} are about the query {owner}, and this one is {query}: was its "
            "checkpointLocation deleted, or another one named? Spark then begins at batch 0, and would write all rows "
            "again. Name the old checkpointLocation; or, to write them all again, give the sink another name"
        )

    def known(self, batch: int) -> StoredDecisions:
        """Return what is decided about this batch, and which is the newest that is decided."""
        keys = self._keys()
        revisions = [revision for number, revision in keys if number == batch]
        newest = max((number for number, _ in keys), default=None)
        return StoredDecisions(newest, self._read(batch, max(revisions)) if revisions else None)

    def decide(self, decision: Decision) -> Decision | None:
        """Store a decision; return it as it is stored, None if another one is there, or one about a later batch.

        A driver that slept for long may find the name free: others have decided the batch, and forgotten it since. What
        they deleted it behind is a later decision, and that is there. Raises Unavailable where storing failed: nobody
        knows then whether it is there.
        """
        stored = replace(decision, creator=self._store.creator())
        name = _name(stored.batch, stored.revision)
        try:
            self._store.create_once(name, encode_fact(Decision.KIND, to_json(stored)))
            is_outrun = any(number > stored.batch for number, _ in self._keys())
            if is_outrun:
                self._store.delete([name])
        except FileExistsError:
            return None
        except OSError as error:
            raise Unavailable(
                f"whether the decision about batch {stored.batch} is stored in {self.place} is not known "
                f"({error.strerror or error}): start the query again, and it is read there"
            ) from error
        return None if is_outrun else stored

    def forget_old(self, newest: int) -> None:
        """Delete what is about batches that Spark forgets too, now and then."""
        if newest % FORGET_EVERY == 0:
            old = [key for key in self._keys() if key[0] <= newest - KEPT_BATCHES]
            self._store.delete(_name(*key) for key in sorted(old))

    def _owner(self) -> str:
        data = self._store.get(_OWNER)
        body = decode_fact(QueryOwner.KIND, data, self._store.place(_OWNER))
        return decode_body(QueryOwner, body, QueryOwner.KIND, self._store.place(_OWNER)).query

    def _read(self, batch: int, revision: int) -> Decision:
        name = _name(batch, revision)
        where = self._store.place(name)
        body = decode_fact(Decision.KIND, self._store.get(name), where)
        return decode_body(Decision, body, Decision.KIND, where)

    def _keys(self) -> list[tuple[int, int]]:
        found = map(_DECISION.fullmatch, self._store.names(_BATCHES))
        return [(int(match[1]), int(match[2])) for match in found if match is not None]


def _name(batch: int, revision: int) -> str:
    return f"{_BATCHES}{batch:012d}-{revision}.json"
