"""What a sent message's properties ask of the broker, and what is stored of them."""

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
    """Makes the properties that are stored: the cluster is added, and WAIT goes where RocketMQ leaves it out as well."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._property = _CLUSTER + cluster.encode()

    def of(self, encoded: bytes) -> bytes:
        """The properties to store for those of a message that was sent alone."""
        if _WAIT_AMONG_OTHERS in encoded:
            encoded = encoded.replace(_WAIT_AMONG_OTHERS, b"\x02", 1)
        elif _WAIT in encoded:
            encoded = props.remove(encoded, (props.WAIT_STORE_MSG_OK,))
        return self._with_cluster(encoded)

    def of_batched(self, encoded: bytes, of_the_batch: Mapping[str, str]) -> bytes:
        """The properties to store for a message of a batch: its own, and those of the batch that it lacks."""
        for name, value in of_the_batch.items():
            if props.find(encoded, name) is None:
                encoded = props.put(encoded, name, value)
        return self._with_cluster(encoded)

    def _with_cluster(self, encoded: bytes) -> bytes:
        if _CLUSTER in encoded:
            return props.put(encoded, props.CLUSTER, self._cluster)
        if not encoded or encoded.endswith(b"\x02"):
            return encoded + self._property
        return encoded + b"\x02" + self._property


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
