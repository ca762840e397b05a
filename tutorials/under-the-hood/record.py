"""Reads the records of one transaction from the bytes of the commit log, and prints them."""

import asyncio
from collections.abc import Iterator

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt
from rocketmq_broker.message.record import Record, decode_record
from rocketmq_broker.testing import RocketMQ


class Undecided:
    """A listener whose local transaction stays undecided until the check-back."""

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE


def records(commit_log: bytes) -> Iterator[Record]:
    """Yields the records of a commit log with one segment. Each record begins with its size."""
    position = 0
    while position + 4 <= len(commit_log) and (size := int.from_bytes(commit_log[position : position + 4], "big")):
        yield decode_record(commit_log[position : position + size])
        position += size


def shown(record: Record) -> str:
    """Formats a record as one line of text."""
    properties = dict(pair.split("\1") for pair in record.properties.decode().split("\2") if pair)
    words = [f"at {record.commit_log_offset:4}", record.topic.decode(), f"queue {record.queue_id}, offset {record.queue_offset}"]
    words += [f"sysFlag {record.sys_flag}", f"body {record.body.decode()!r}"]
    if record.prepared_transaction_offset:
        words.append(f"preparedTransactionOffset {record.prepared_transaction_offset}")
    words += [f"{name}={properties[name]}" for name in ("REAL_TOPIC", "TRAN_MSG", "PGROUP", "TAGS") if name in properties]
    return " | ".join(words)


async def main() -> None:
    """Sends a transactional message, which is decided by a check-back."""
    async with RocketMQ(seed=1) as rocketmq:
        producer = await rocketmq.transaction_producer("shop", Undecided())
        await producer.create_topic("orders")
        await producer.send(Message.of("greetings", "hello"))
        await producer.send_message_in_transaction(Message.of("orders", "a book", keys=["order-1"]))
        await rocketmq.advance(minutes=1)
        print("\n".join(shown(record) for record in records(rocketmq.commit_log())))


if __name__ == "__main__":
    asyncio.run(main())
