"""Checks the properties and sysFlag of sent messages, and derives the stored ones.

A broker trusts some properties in its store: the destination of a half or delayed message, the original of a copy. So it stores
these only if it has written them itself.

Each message passes here. Therefore `find` is used instead of `in`, which takes twice as long for bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag, topics
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.server.schedule.delay_levels import TIMER, delay_level
from rocketmq_broker.transaction.messages.half_message import RESUMED_FROM

BROKERS_OWN: Final = (
    props.REAL_TOPIC,
    props.REAL_QUEUE_ID,
    props.TRANSACTION_CHECK_TIMES,
    props.TRANSACTION_PREPARED_QUEUE_OFFSET,
    props.INNER_MULTI_QUEUE_OFFSET,
    RESUMED_FROM,
)
"""The properties that only a broker writes. A client may send them nevertheless: a consumer that sends a failed message again
itself leaves them in it. So they are left out, and the message is stored.
"""

MAX_KEYS: Final = 1000
"""Keys of one message. Each is an entry of the index: of 16,000 in one message the broker would make them in one go."""
MAX_KEYS_OF_A_BATCH: Final = 262_144
"""Keys of all messages of one batch: four for each message of the longest batch."""
MAX_PROPERTIES_OF_A_BATCH: Final = 64
"""Properties of a batch as a whole, each of which is looked for in each of its messages. Apache's clients set three."""
ADDED_TO_EACH_BYTES: Final = 128
"""The bytes that those properties may always add to each message: more than an id, WAIT, the instance and the cluster take."""
_UNCOUNTED_BYTES: Final = 2 * MAX_KEYS
"""So short properties hold no more keys than a message may have."""
_KEYS: Final = props.beginning(props.KEYS)
_WAIT: Final = props.beginning(props.WAIT_STORE_MSG_OK)
_WAIT_AMONG_OTHERS: Final = b"\x02" + _WAIT + b"true\x02"
"""The form of Apache's client; it saves a search for the property's begin and end."""
_CLUSTER: Final = props.beginning(props.CLUSTER)
_TRANSACTION: Final = props.beginning(props.TRANSACTION_PREPARED)
_TRANSACTION_AMONG_OTHERS: Final = b"\x02" + _TRANSACTION + b"true\x02"
_RETRY: Final = topics.RETRY_PREFIX.encode()
# Each name in BROKERS_OWN contains one of these, and hardly any other name does.
_OWN_DESTINATION: Final = b"REAL_"
_OWN_COUNT: Final = props.beginning("_CHECK_TIMES")
_OWN_OFFSET: Final = props.beginning("_QUEUE_OFFSET")
_OWN_ORIGIN: Final = props.beginning(RESUMED_FROM)


class StoredProperties:
    """Derives the stored properties: adds the cluster, and omits WAIT where Apache's broker omits it."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._property = _CLUSTER + cluster.encode()
        self._most_bytes_before_it = props.MAX_PROPERTIES_LENGTH - 1 - len(self._property)

    def of(self, encoded: bytes) -> bytes:
        """Returns the properties of a plain message, without WAIT, which has no meaning for readers."""
        if encoded.find(_WAIT_AMONG_OTHERS) >= 0:
            encoded = encoded.replace(_WAIT_AMONG_OTHERS, b"\x02", 1)
        elif encoded.find(_WAIT) >= 0:
            encoded = props.remove(encoded, (props.WAIT_STORE_MSG_OK,))
        return self.of_waiting(encoded)

    def of_waiting(self, encoded: bytes) -> bytes:
        """Returns the properties of a half or delayed message, with WAIT: Apache's broker restores it with their destination."""
        encoded = without_brokers_own(encoded)
        if len(encoded) > self._most_bytes_before_it:
            return encoded  # of a consumer that sends a message again: it matters more than the cluster
        if encoded.find(_CLUSTER) >= 0:
            return props.put(encoded, props.CLUSTER, self._cluster)
        if not encoded or encoded.endswith(b"\x02"):
            return encoded + self._property
        return encoded + b"\x02" + self._property

    def of_batch(self, encoded: bytes) -> BatchProperties:
        """Returns the properties that the batch as a whole adds to each of its messages."""
        return BatchProperties(props.decode(self.of_waiting(encoded)))


class BatchProperties:
    """The properties of a batch as a whole. Each message gets those that it lacks.

    Apache's broker lets the batch's properties win. But RocketMQ 5's client gives the batch an id, which all messages would get.
    """

    def __init__(self, named: Mapping[str, str]) -> None:
        """`named` are the batch's properties. Raises IllegalMessage if there are too many."""
        if len(named) > MAX_PROPERTIES_OF_A_BATCH:
            count, most = len(named), MAX_PROPERTIES_OF_A_BATCH
            raise IllegalMessage(f"the batch as a whole has {count} properties; {most} are allowed: give them to its messages")
        self._pairs = [(name, props.encode({name: value})) for name, value in named.items()]

    def of(self, encoded: bytes) -> bytes:
        """Returns the properties of one message of the batch."""
        own = props.remove(without_brokers_own(encoded), (props.CLUSTER,)).removesuffix(b"\x02")
        added = [pair for name, pair in self._pairs if props.find(own, name) is None]
        return b"\x02".join([own, *added] if own else added)


class BatchSize:
    """Bounds a batch: a short request must not produce a long log, nor very many index entries."""

    def __init__(self, most_added_bytes: int) -> None:
        """`most_added_bytes` bounds the bytes that the batch's properties add in all; each message may always add a little."""
        self._most_added_bytes = most_added_bytes
        self._messages = self._added_bytes = self._keys = 0

    def add(self, encoded: bytes, own: bytes) -> None:
        """Counts a message: its stored properties, and its own. Raises IllegalMessage."""
        self._messages += 1
        self._added_bytes += len(encoded) - len(own)
        if self._added_bytes > max(self._most_added_bytes, self._messages * ADDED_TO_EACH_BYTES):
            raise IllegalMessage(
                f"the properties of the batch as a whole go to each of its messages, and add {self._added_bytes} bytes to the "
                f"first {self._messages}; {self._most_added_bytes} are allowed: send several batches"
            )
        keys = count_keys(encoded)
        _refuse_keys(keys)
        self._keys += keys
        if self._keys > MAX_KEYS_OF_A_BATCH:
            raise IllegalMessage(f"the batch has more than {MAX_KEYS_OF_A_BATCH} keys: send several batches")


def without_brokers_own(encoded: bytes) -> bytes:
    """Returns the properties without those that only a broker writes."""
    if (
        encoded.find(_OWN_DESTINATION) >= 0
        or encoded.find(_OWN_COUNT) >= 0
        or encoded.find(_OWN_OFFSET) >= 0
        or encoded.find(_OWN_ORIGIN) >= 0
    ):
        return props.remove(encoded, BROKERS_OWN)
    return encoded


def count_keys(encoded: bytes) -> int:
    """Returns the number of the message's keys, or a few more: it counts repeated blanks too."""
    if encoded.find(_KEYS) < 0:
        return 0
    keys = props.find(encoded, props.KEYS)
    return keys.count(props.KEY_SEPARATOR) + 1 if keys else 0


def refuse_too_much(topic: str, encoded: bytes) -> None:
    """Raises IllegalMessage for a message with too many keys, or too long properties.

    A consumer that sends a message to its retry topic has added to its properties. So there they may fill the room.
    """
    if len(encoded) > _UNCOUNTED_BYTES:
        _refuse_keys(count_keys(encoded))
        if len(encoded) > props.MAX_SENT_PROPERTIES_LENGTH and not topic.startswith(topics.RETRY_PREFIX):
            _refuse_length(encoded)


def _refuse_keys(count: int) -> None:
    if count > MAX_KEYS:
        raise IllegalMessage(f"the message has {count} keys; {MAX_KEYS} are allowed")


def _refuse_length(encoded: bytes) -> None:
    most, kept = props.MAX_SENT_PROPERTIES_LENGTH, props.MAX_PROPERTIES_LENGTH - props.MAX_SENT_PROPERTIES_LENGTH
    raise IllegalMessage(
        f"the message properties have {len(encoded)} bytes; {most} are allowed, and {kept} are kept for those that brokers and "
        "consumers add: put what is long into the body"
    )


def begins_transaction(encoded: bytes) -> bool:
    """Returns whether TRAN_MSG is true."""
    if encoded.find(_TRANSACTION_AMONG_OTHERS) >= 0:
        return True
    return encoded.find(_TRANSACTION) >= 0 and (props.find(encoded, props.TRANSACTION_PREPARED) or "").lower() == "true"


def stored_sys_flag(sys_flag: int, *, is_transactional: bool) -> int:
    """Returns the sysFlag to store for a sent one. Its transaction bits may mark the begin of a transaction, if it is one.

    Raises IllegalMessage for other transaction bits: only a broker marks a message as committed.
    """
    transaction = sys_flag & sysflag.TRANSACTION_MASK
    if transaction and not (is_transactional and transaction == sysflag.TRANSACTION_PREPARED):
        raise IllegalMessage(_contradiction(transaction))
    return sys_flag & sysflag.SENT_BITS


def _contradiction(transaction: int) -> str:
    if transaction == sysflag.TRANSACTION_PREPARED:
        return "the sysFlag says that the message begins a transaction; its property TRAN_MSG does not"
    decided = "committed" if transaction == sysflag.TRANSACTION_COMMIT else "rolled back"
    return f"the sysFlag says that the message was {decided}; only a broker says that, of what it stores after END_TRANSACTION"


def refuse_in_batch(topic: bytes, encoded: bytes) -> None:
    """Raises IllegalMessage for messages without a meaning in a batch; clients do not send them so."""
    if topic.startswith(_RETRY):
        raise IllegalMessage("a retry topic takes no batches")
    if delay_level(encoded) > 0 or encoded.find(TIMER) >= 0:
        raise IllegalMessage("a delayed message cannot be part of a batch")
    if begins_transaction(encoded):
        raise IllegalMessage("a transactional message cannot be part of a batch")
    if len(encoded) > props.MAX_SENT_PROPERTIES_LENGTH:
        _refuse_length(encoded)
