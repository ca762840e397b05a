"""Checks the properties and sysFlag of sent messages, and derives the stored properties and sysFlag.

The broker trusts some properties of stored messages, such as the destination of a half message. It stores these properties only
if it has written them itself.

This code runs for each message. It uses `props.contains` instead of `in`, which is slower for bytes.
"""

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
"""Properties that only a broker writes. The broker removes them from sent messages, and accepts the messages.

Clients may send such properties, for example when a consumer sends a failed message again.
"""

MAX_KEYS: Final = 1000
"""The maximum number of keys of a message.

Each key becomes an index entry, and all entries of a message are written in one step.
"""
MAX_KEYS_OF_A_BATCH: Final = 262_144
"""The maximum number of keys in a batch: four for each message of the largest batch."""
MAX_PROPERTIES_OF_A_BATCH: Final = 64
"""The maximum number of properties of a batch as a whole.

The broker searches each message of the batch for each of these properties. Apache's clients set three.
"""
ADDED_TO_EACH_BYTES: Final = 128
"""The number of bytes that a batch's properties may always add to each message.

This is enough for the unique id, WAIT, the instance and the cluster.
"""
_UNCOUNTED_BYTES: Final = 2 * MAX_KEYS
"""The maximum length, in bytes, of encoded properties that cannot contain too many keys. Their keys are not counted."""
_KEYS: Final = props.beginning(props.KEYS)
_WAIT: Final = props.beginning(props.WAIT_STORE_MSG_OK)
_WAIT_AMONG_OTHERS: Final = b"\x02" + _WAIT + b"true\x02"
"""The property WAIT as Apache's client sends it.

If this form is found, no search for the beginning and end of the property is needed.
"""
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
    """Derives the stored properties. Adds the cluster, and removes WAIT in the same cases as Apache's broker."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._property = _CLUSTER + cluster.encode()
        self._max_bytes_before_it = props.MAX_PROPERTIES_LENGTH - 1 - len(self._property)

    def of(self, encoded: bytes) -> bytes:
        """Returns the properties of a plain message, without WAIT, which is meaningless to consumers."""
        if encoded.find(_WAIT_AMONG_OTHERS) >= 0:
            encoded = encoded.replace(_WAIT_AMONG_OTHERS, b"\x02", 1)
        elif encoded.find(_WAIT) >= 0:
            encoded = props.remove(encoded, (props.WAIT_STORE_MSG_OK,))
        return self.of_waiting(encoded)

    def of_waiting(self, encoded: bytes) -> bytes:
        """Returns the properties of a half or delayed message, with WAIT, which Apache's broker keeps until delivery."""
        encoded = without_brokers_own(encoded)
        if len(encoded) > self._max_bytes_before_it:
            # A consumer has sent the message again. Its properties leave no room for the cluster, and take precedence over it.
            return encoded
        if encoded.find(_CLUSTER) >= 0:
            return props.put(encoded, props.CLUSTER, self._cluster)
        if not encoded or encoded.endswith(b"\x02"):
            return encoded + self._property
        return encoded + b"\x02" + self._property

    def of_batch(self, encoded: bytes) -> "BatchProperties":
        """Returns the properties that the batch as a whole adds to each of its messages."""
        return BatchProperties(props.decode(self.of_waiting(encoded)))


class BatchProperties:
    """The properties of a batch as a whole. They are added to each message that does not have them.

    In Apache's broker the batch's properties take precedence. However, RocketMQ 5's client sets a unique id on the batch,
    which all messages would share.
    """

    def __init__(self, named: Mapping[str, str]) -> None:
        """Encodes the properties. `named` contains the batch's properties. Raises IllegalMessage if there are too many."""
        if len(named) > MAX_PROPERTIES_OF_A_BATCH:
            count, limit = len(named), MAX_PROPERTIES_OF_A_BATCH
            raise IllegalMessage(f"too many batch properties: {count}, limit {limit}; set them on the messages instead")
        self._pairs = [(name, props.encode({name: value})) for name, value in named.items()]

    def of(self, encoded: bytes) -> bytes:
        """Returns the message's own properties, and the batch's properties that the message does not have."""
        own = props.remove(without_brokers_own(encoded), (props.CLUSTER,)).removesuffix(b"\x02")
        added = [pair for name, pair in self._pairs if props.find(own, name) is None]
        return b"\x02".join([own, *added] if own else added)


class BatchSize:
    """Limits a batch, so that a short request does not produce too much log data or too many index entries."""

    def __init__(self, max_added_bytes: int) -> None:
        """Sets the limit. The batch's properties may add `max_added_bytes` in total, plus ADDED_TO_EACH_BYTES per message."""
        self._max_added_bytes = max_added_bytes
        self._messages = self._added_bytes = self._keys = 0

    def add(self, encoded: bytes, own: bytes) -> None:
        """Counts a message.

        `encoded` contains all stored properties of the message. `own` contains only those that do not come from the batch. Raises
        IllegalMessage if a limit is exceeded.
        """
        self._messages += 1
        self._added_bytes += len(encoded) - len(own)
        if self._added_bytes > max(self._max_added_bytes, self._messages * ADDED_TO_EACH_BYTES):
            raise IllegalMessage(
                f"the batch properties add {self._added_bytes} bytes to the first {self._messages} messages, "
                f"limit {self._max_added_bytes}; send several batches"
            )
        keys = count_keys(encoded)
        _refuse_keys(keys)
        self._keys += keys
        if self._keys > MAX_KEYS_OF_A_BATCH:
            raise IllegalMessage(f"too many keys in the batch: limit {MAX_KEYS_OF_A_BATCH}; send several batches")


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
    """Returns the number of keys. The result may be slightly too high, because repeated spaces are counted as keys."""
    if encoded.find(_KEYS) < 0:
        return 0
    keys = props.find(encoded, props.KEYS)
    return keys.count(props.KEY_SEPARATOR) + 1 if keys else 0


def refuse_too_much(topic: str, encoded: bytes) -> None:
    """Raises IllegalMessage if a message has too many keys or its properties are too long.

    Messages sent to a retry topic may have longer properties, because consumers add to them.
    """
    if len(encoded) > _UNCOUNTED_BYTES:
        _refuse_keys(count_keys(encoded))
        if len(encoded) > props.MAX_SENT_PROPERTIES_LENGTH and not topic.startswith(topics.RETRY_PREFIX):
            _refuse_length(encoded)


def _refuse_keys(count: int) -> None:
    if count > MAX_KEYS:
        raise IllegalMessage(f"too many keys: {count}, limit {MAX_KEYS}")


def _refuse_length(encoded: bytes) -> None:
    limit, reserved = props.MAX_SENT_PROPERTIES_LENGTH, props.MAX_PROPERTIES_LENGTH - props.MAX_SENT_PROPERTIES_LENGTH
    raise IllegalMessage(
        f"message properties too long: {len(encoded)} bytes, limit {limit} ({reserved} are reserved for brokers and consumers); "
        "put long values into the body"
    )


def begins_transaction(encoded: bytes) -> bool:
    """Returns True if the property TRAN_MSG is true."""
    if encoded.find(_TRANSACTION_AMONG_OTHERS) >= 0:
        return True
    return encoded.find(_TRANSACTION) >= 0 and (props.find(encoded, props.TRANSACTION_PREPARED) or "").lower() == "true"


def stored_sys_flag(sys_flag: int, *, is_transactional: bool) -> int:
    """Returns the sysFlag to store.

    The transaction bits must be 0, or TRANSACTION_PREPARED_TYPE if the message begins a transaction. Raises IllegalMessage for
    other bits, because only a broker marks messages as committed or rolled back.
    """
    transaction = sys_flag & sysflag.TRANSACTION_MASK
    if transaction and not (is_transactional and transaction == sysflag.TRANSACTION_PREPARED_TYPE):
        raise IllegalMessage(_contradiction(transaction))
    return sys_flag & sysflag.SENT_BITS


def _contradiction(transaction: int) -> str:
    if transaction == sysflag.TRANSACTION_PREPARED_TYPE:
        return "the sysFlag marks the message as transactional, but the property TRAN_MSG does not"
    decided = "committed" if transaction == sysflag.TRANSACTION_COMMIT_TYPE else "rolled back"
    return f"the sysFlag marks the message as {decided}; only a broker may set this, after END_TRANSACTION"


def refuse_in_batch(topic: bytes, encoded: bytes) -> None:
    """Raises IllegalMessage if the message is not allowed in a batch."""
    if topic.startswith(_RETRY):
        raise IllegalMessage("a retry topic does not accept batches")
    if delay_level(encoded) > 0 or encoded.find(TIMER) >= 0:
        raise IllegalMessage("a batch must not contain delayed messages")
    if begins_transaction(encoded):
        raise IllegalMessage("a batch must not contain transactional messages")
    if len(encoded) > props.MAX_SENT_PROPERTIES_LENGTH:
        _refuse_length(encoded)
