"""The answers of a transaction coordinator to EndTxn, as tables: measured on Kafka 4.3.1, and compared by a test.

The version of the request chooses the table, whatever the broker's own protocol: 5 means protocol 2, less means 1.
`None` stands for "prepare it".
"""

from __future__ import annotations

from enum import Enum, IntEnum

from twopc.kafka.clients.described_transaction import BrokerState

#: A producer is never given a greater epoch; one more is kept for fencing it.
LAST_PRODUCER_EPOCH = 32_766
MOST_PRODUCER_EPOCH = 32_767
BUMPING_END_TXN = 5


class Code(IntEnum):
    """The error codes of the requests that deal with transactions."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    NOT_ENOUGH_REPLICAS = 19
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    UNSTABLE_OFFSET_COMMIT = 88
    PRODUCER_FENCED = 90
    TRANSACTIONAL_ID_NOT_FOUND = 105
    TRANSACTION_ABORTABLE = 120


class Asks(Enum):
    """The relation of a request's producer to what the coordinator holds."""

    AS_CURRENT = "same producer epoch"
    AS_BEFORE = "the producer epoch before it"


_EMPTY, _ONGOING = BrokerState.EMPTY, BrokerState.ONGOING
_PREPARE_COMMIT, _PREPARE_ABORT = BrokerState.PREPARE_COMMIT, BrokerState.PREPARE_ABORT
_COMPLETE_COMMIT, _COMPLETE_ABORT = BrokerState.COMPLETE_COMMIT, BrokerState.COMPLETE_ABORT

#: EndTxn 0 to 4: (state, commit) -> answer. Only the current producer epoch gets here; all others are fenced.
END_TXN_1: dict[tuple[BrokerState, bool], Code | None] = {
    (_EMPTY, True): Code.INVALID_TXN_STATE,
    (_EMPTY, False): Code.INVALID_TXN_STATE,
    (_ONGOING, True): None,
    (_ONGOING, False): None,
    (_PREPARE_COMMIT, True): Code.CONCURRENT_TRANSACTIONS,
    (_PREPARE_COMMIT, False): Code.INVALID_TXN_STATE,
    (_PREPARE_ABORT, True): Code.INVALID_TXN_STATE,
    (_PREPARE_ABORT, False): Code.CONCURRENT_TRANSACTIONS,
    (_COMPLETE_COMMIT, True): Code.NONE,
    (_COMPLETE_COMMIT, False): Code.INVALID_TXN_STATE,
    (_COMPLETE_ABORT, True): Code.INVALID_TXN_STATE,
    (_COMPLETE_ABORT, False): Code.NONE,
}

#: EndTxn 5: (state, commit, relation) -> answer. What is prepared raises the producer epoch by one.
END_TXN_2: dict[tuple[BrokerState, bool, Asks], Code | None] = {
    (_EMPTY, True, Asks.AS_CURRENT): Code.INVALID_TXN_STATE,
    (_EMPTY, False, Asks.AS_CURRENT): None,
    (_EMPTY, True, Asks.AS_BEFORE): Code.PRODUCER_FENCED,
    (_EMPTY, False, Asks.AS_BEFORE): Code.PRODUCER_FENCED,
    (_ONGOING, True, Asks.AS_CURRENT): None,
    (_ONGOING, False, Asks.AS_CURRENT): None,
    (_ONGOING, True, Asks.AS_BEFORE): Code.PRODUCER_FENCED,
    (_ONGOING, False, Asks.AS_BEFORE): Code.PRODUCER_FENCED,
    (_PREPARE_COMMIT, True, Asks.AS_CURRENT): Code.PRODUCER_FENCED,
    (_PREPARE_COMMIT, False, Asks.AS_CURRENT): Code.PRODUCER_FENCED,
    (_PREPARE_COMMIT, True, Asks.AS_BEFORE): Code.CONCURRENT_TRANSACTIONS,
    (_PREPARE_COMMIT, False, Asks.AS_BEFORE): Code.INVALID_TXN_STATE,
    (_PREPARE_ABORT, True, Asks.AS_CURRENT): Code.PRODUCER_FENCED,
    (_PREPARE_ABORT, False, Asks.AS_CURRENT): Code.PRODUCER_FENCED,
    (_PREPARE_ABORT, True, Asks.AS_BEFORE): Code.INVALID_TXN_STATE,
    (_PREPARE_ABORT, False, Asks.AS_BEFORE): Code.CONCURRENT_TRANSACTIONS,
    (_COMPLETE_COMMIT, True, Asks.AS_CURRENT): Code.INVALID_TXN_STATE,
    (_COMPLETE_COMMIT, False, Asks.AS_CURRENT): None,
    (_COMPLETE_COMMIT, True, Asks.AS_BEFORE): Code.NONE,
    (_COMPLETE_COMMIT, False, Asks.AS_BEFORE): Code.INVALID_TXN_STATE,
    (_COMPLETE_ABORT, True, Asks.AS_CURRENT): Code.INVALID_TXN_STATE,
    (_COMPLETE_ABORT, False, Asks.AS_CURRENT): None,
    (_COMPLETE_ABORT, True, Asks.AS_BEFORE): Code.INVALID_TXN_STATE,
    (_COMPLETE_ABORT, False, Asks.AS_BEFORE): Code.NONE,
}


#: Requests of a lower version than this can't say PRODUCER_FENCED; the broker says INVALID_PRODUCER_EPOCH instead.
FENCED_SINCE = {"InitProducerId": 4, "AddPartitionsToTxn": 2, "AddOffsetsToTxn": 2, "EndTxn": 2}


def as_told(request: str, version: int, code: Code) -> Code:
    """Return the code that a request of this version is answered with."""
    if code is Code.PRODUCER_FENCED and version < FENCED_SINCE[request]:
        return Code.INVALID_PRODUCER_EPOCH
    return code
