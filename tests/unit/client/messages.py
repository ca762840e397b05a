"""Messages and queues for the client's tests."""

from collections.abc import Iterable, Mapping

from rocketmq_broker.message import MessageExt, MessageQueue

QUEUE = MessageQueue("orders", "broker-a", 0)


def message(
    offset: int,
    *,
    body: bytes = b"body",
    topic: str = "orders",
    reconsume_times: int = 0,
    properties: Mapping[str, str] | None = None,
) -> MessageExt:
    return MessageExt(
        topic=topic,
        body=body,
        properties={"UNIQ_KEY": f"ID{offset}"} if properties is None else properties,
        broker_name="broker-a",
        queue_id=0,
        queue_offset=offset,
        commit_log_offset=offset * 100,
        store_size=100,
        sys_flag=0,
        body_crc=0,
        born_timestamp=1,
        born_host="127.0.0.1:1",
        store_timestamp=2,
        store_host="127.0.0.1:10911",
        reconsume_times=reconsume_times,
        prepared_transaction_offset=0,
        offset_message_id="7F00000100002A9F0000000000000064",
    )


def offsets(messages: Iterable[MessageExt]) -> list[int]:
    return [each.queue_offset for each in messages]
