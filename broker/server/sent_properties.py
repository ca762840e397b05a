"""What a sent message's properties ask of the broker, and what is stored of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.message import properties as props
from broker.message import topics
from broker.message.errors import IllegalMessage
from broker.server.delay_levels import delay_level

_WAIT: Final = props.WAIT_STORE_MSG_OK.encode() + b"\x01"
_WAIT_AMONG_OTHERS: Final = b"\x02" + _WAIT + b"true\x02"
"""As Apache's client writes it; it saves looking for where it begins and ends."""
_CLUSTER: Final = props.CLUSTER.encode() + b"\x01"
_TRANSACTION: Final = props.TRANSACTION_PREPARED.encode() + b"\x01"
_TRANSACTION_AMONG_OTHERS: Final = b"\x02" + _TRANSACTION + b"true\x02"
_RETRY: Final = topics.RETRY_PREFIX.encode()


class StoredProperties:
    """Makes the properties that are stored: the cluster is added, and WAIT is left out where Apache's broker leaves it out."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._property = _CLUSTER + cluster.encode()

    def of(self, encoded: bytes) -> bytes:
        """The properties of a plain message: without WAIT, which says nothing to a reader."""
        if _WAIT_AMONG_OTHERS in encoded:
            encoded = encoded.replace(_WAIT_AMONG_OTHERS, b"\x02", 1)
        elif _WAIT in encoded:
            encoded = props.remove(encoded, (props.WAIT_STORE_MSG_OK,))
        return self.of_waiting(encoded)

    def of_waiting(self, encoded: bytes) -> bytes:
        """The properties of a half message or a delayed one: Apache's broker puts WAIT back when it notes their destination."""
        if _CLUSTER in encoded:
            return props.put(encoded, props.CLUSTER, self._cluster)
        if not encoded or encoded.endswith(b"\x02"):
            return encoded + self._property
        return encoded + b"\x02" + self._property

    def of_batch(self, encoded: bytes) -> BatchProperties:
        """What those of the batch as a whole add to each of its messages."""
        return BatchProperties(props.decode(self.of_waiting(encoded)))


class BatchProperties:
    """The properties of a batch as a whole. Each of its messages has them, save those that it has itself.

    With Apache's broker the batch's win. But RocketMQ 5's client gives the batch an id, which all its messages would have then.
    """

    def __init__(self, named: Mapping[str, str]) -> None:
        self._pairs = [(name, props.encode({name: value})) for name, value in named.items()]

    def of(self, encoded: bytes) -> bytes:
        """The properties of one message of the batch."""
        own = props.remove(encoded, (props.CLUSTER,)).removesuffix(b"\x02")
        added = [pair for name, pair in self._pairs if props.find(own, name) is None]
        return b"\x02".join([own, *added] if own else added)


def begins_transaction(encoded: bytes) -> bool:
    """Whether TRAN_MSG is true."""
    if _TRANSACTION_AMONG_OTHERS in encoded:
        return True
    return _TRANSACTION in encoded and (props.find(encoded, props.TRANSACTION_PREPARED) or "").lower() == "true"


def refuse_in_batch(topic: bytes, encoded: bytes) -> None:
    """Raises IllegalMessage for what clients do not put into batches either, as nobody could say what it means there."""
    if topic.startswith(_RETRY):
        raise IllegalMessage("a retry topic takes no batches")
    if delay_level(encoded) > 0:
        raise IllegalMessage("a delayed message cannot be part of a batch")
    if begins_transaction(encoded):
        raise IllegalMessage("a transactional message cannot be part of a batch")
    if len(encoded) > props.MAX_PROPERTIES_LENGTH:
        raise IllegalMessage(f"the message properties have {len(encoded)} bytes; {props.MAX_PROPERTIES_LENGTH} are allowed")
