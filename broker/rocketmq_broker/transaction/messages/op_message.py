"""The op message, which marks half messages as closed (RocketMQ's TransactionalMessageBridge.addRemoveTagInTransactionOp).

    topic RMQ_SYS_TRANS_OP_HALF_TOPIC, queue 0, tag `d`, body = the half message's queue offset in ASCII digits

RocketMQ 5 writes several offsets, separated by commas, into one op message. This broker can read such op messages, but does
not write them.
"""

from typing import Final

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import tags, topics
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.transaction.errors import NotAnOpMessage
from rocketmq_broker.transaction.messages.half_message import HalfMessage
from rocketmq_broker.transaction.states import State

OP_TOPIC: Final = topics.OP_HALF_TOPIC.encode()
REMOVE_TAG: Final = "d"
OP_TAGS_CODE: Final = tags.tags_code(REMOVE_TAG)
OP_PROPERTIES: Final = props.encode({props.TAGS: REMOVE_TAG})
REASON: Final = "REASON"
"""The property that contains the reason of an operator's decision or of a lost transaction. RocketMQ has no such property."""
OUTCOME: Final = "OUTCOME"
"""The property that contains the state in which the transaction ended. It is set together with the reason."""
GIVEN_REASON_KEY: Final = "DECIDED_WITH_REASON"
"""The key by which the index finds all op messages with a reason. The other key of these messages is the half queue offset."""


def op_message(half_queue_offset: int, now_ms: int, store_host: bytes, state: State | None, reason: str | None) -> InnerMessage:
    """Returns the op message that closes a half message. Stores `reason`, if given, together with the state.

    Raises IllegalMessage if the reason contains \\x01 or \\x02.
    """
    encoded = OP_PROPERTIES if reason is None else _with_reason(half_queue_offset, state, reason)
    return InnerMessage(OP_TOPIC, 0, b"%d" % half_queue_offset, encoded, 0, 0, now_ms, store_host, 0, 0, OP_TAGS_CODE)


def _with_reason(half_queue_offset: int, state: State | None, reason: str) -> bytes:
    keys = f"{half_queue_offset}{props.KEY_SEPARATOR}{GIVEN_REASON_KEY}"
    ended = state.value if state is not None else ""
    return props.encode({props.TAGS: REMOVE_TAG, props.KEYS: keys, REASON: reason, OUTCOME: ended})


def decided_offsets(op: HalfMessage) -> list[int]:
    """Returns the half queue offsets that an op message closes. Raises NotAnOpMessage if its tag or body is invalid."""
    if props.find(op.properties, props.TAGS) != REMOVE_TAG:
        raise NotAnOpMessage(f"op message at {op.commit_log_offset} must have the tag {REMOVE_TAG!r}")
    try:
        offsets = [int(part) for part in op.body.decode("ascii").split(",") if part.strip()]
    except ValueError:
        offsets = []
    if not offsets or min(offsets) < 0:
        raise NotAnOpMessage(f"op message at {op.commit_log_offset} must contain half queue offsets, not {op.body[:40]!r}")
    return offsets
