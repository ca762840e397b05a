"""Records for tests: sent messages, half messages as this broker and Apache's write them, and op messages."""

from rocketmq_broker.message import properties as props
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.record import decode_record, encode_message, encode_record, size_of
from rocketmq_broker.message.tags import tags_code
from rocketmq_broker.transaction.messages.op_message import op_message
from rocketmq_broker.transaction.pending import PendingTransactions
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from rocketmq_broker.transaction.transitions import prepared

HOST = bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F))
PRODUCER_HOST = bytes((127, 0, 0, 1, 0, 0, 0x15, 0xB3))
GROUP = "order_service"


def sent_properties(transaction_id: str = "ID1", **more: str) -> bytes:
    return props.encode({"UNIQ_KEY": transaction_id, "TRAN_MSG": "true", "PGROUP": GROUP, "TAGS": "created", **more})


def half_inner(
    body: bytes = b"order 1",
    *,
    transaction_id: str = "ID1",
    born_ms: int = 1000,
    sys_flag: int = 4,
    queue_id: int = 3,
    **more: str,
) -> InnerMessage:
    properties = sent_properties(transaction_id, **more)
    return prepared(InnerMessage(b"orders", queue_id, body, properties, 7, sys_flag, born_ms, PRODUCER_HOST), GROUP)


def changed(message: InnerMessage, **fields: object) -> InnerMessage:
    """Returns a copy of the message with other values in some fields."""
    return InnerMessage(
        **{name: fields.get(name, getattr(message, name)) for name in dir(InnerMessage) if not name.startswith("_")}
    )  # type: ignore[arg-type]


def stored(message: InnerMessage, *, commit_log_offset: int, queue_offset: int, store_ms: int = 1000) -> bytes:
    return encode_message(message, size_of(message, HOST), queue_offset, commit_log_offset, store_ms, HOST)


def half_record(commit_log_offset: int = 100, queue_offset: int = 0, *, store_ms: int = 1000, **more: object) -> bytes:
    return stored(half_inner(**more), commit_log_offset=commit_log_offset, queue_offset=queue_offset, store_ms=store_ms)  # type: ignore[arg-type]


def rewritten_by_apache(data: bytes, *, commit_log_offset: int, queue_offset: int, store_ms: int, **changed: str) -> bytes:
    """Returns the record that Apache 4.9.7 appends when it checks the half message `data`.

    `changed` are the properties to set. With TRAN_PREPARED_QUEUE_OFFSET, the record is a copy within the immunity time.
    """
    before = decode_record(data)
    encoded = before.properties
    for name, value in changed.items():
        encoded = props.put(encoded, name, value)
    return encode_record(
        topic=before.topic,
        queue_id=0,
        queue_offset=queue_offset,
        commit_log_offset=commit_log_offset,
        flag=0,
        sys_flag=before.sys_flag,
        born_timestamp=before.born_timestamp,
        born_host=before.born_host,
        store_timestamp=store_ms,
        store_host=HOST,
        reconsume_times=0,
        prepared_transaction_offset=0,
        body=before.body,
        properties=encoded,
    )


def op_record(half_queue_offset: int, *, queue_offset: int = 0, commit_log_offset: int = 9000) -> bytes:
    message = op_message(half_queue_offset, 2000, HOST, None, None)
    return stored(message, commit_log_offset=commit_log_offset, queue_offset=queue_offset)


def transaction(
    offset: int = 100, queue_offset: int = 0, *, begun_ms: int = 0, due_ms: int = 6000, checks: int = 0
) -> PendingTransaction:
    return PendingTransaction(
        commit_log_offset=offset,
        queue_offset=queue_offset,
        stored_at=offset,
        stored_queue_offset=queue_offset,
        producer_group=GROUP,
        topic=b"orders",
        queue_id=3,
        tags_code=tags_code("created"),
        begun_ms=begun_ms,
        due_ms=due_ms,
        checks=checks,
    )


def pending(table: PendingTransactions, offset: int = 100) -> PendingTransaction:
    """Returns the pending transaction at this commit log offset."""
    found = table.find(offset)
    assert found is not None
    return found
