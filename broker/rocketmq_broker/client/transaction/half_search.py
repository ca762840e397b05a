"""Finds the half message that has a given transaction id."""

import asyncio
from typing import Final

from rocketmq_broker.client.errors import BrokerError, TransactionNotFound
from rocketmq_broker.client.instance.broker_calls import BrokerCalls
from rocketmq_broker.client.instance.calls import understood
from rocketmq_broker.message import properties, topics
from rocketmq_broker.message.record import Record, decode_records
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.topic import QueryMessageRequestHeader

_MAX_COPIES: Final = 64
_FOREVER_MS: Final = 1 << 50
_TRIES: Final = 10
_BETWEEN_TRIES_S: Final = 0.2
"""The pause between two searches in seconds. The index of a broker lags slightly behind its commit log."""


class HalfSearch:
    """Searches the brokers' indexes. A half message may have several copies, because check-backs rewrite it."""

    def __init__(self, calls: BrokerCalls) -> None:
        """`calls` sends the requests."""
        self._calls = calls

    async def newest(self, transaction_id: str) -> tuple[str, Record]:
        """Returns the broker's address and the newest copy of the half message, which is the valid one.

        Raises TransactionNotFound if no copy is found within 2 s, and BrokerError or BrokerUnreachable if a search fails.
        """
        addresses: list[str] = []
        for _ in range(_TRIES):
            addresses = sorted(self._calls.routes.masters)
            found = await asyncio.gather(*(self._copies(address, transaction_id) for address in addresses))
            for address, copies in zip(addresses, found, strict=True):
                if copies:
                    return address, max(copies, key=lambda record: record.commit_log_offset)
            await asyncio.sleep(_BETWEEN_TRIES_S)
        searched = ", ".join(addresses) or "none"
        raise TransactionNotFound(f"no half message has transaction id {transaction_id}; brokers searched: {searched}")

    @understood
    async def _copies(self, address: str, transaction_id: str) -> list[Record]:
        header = QueryMessageRequestHeader(
            topic=topics.HALF_TOPIC,
            key=transaction_id,
            max_num=_MAX_COPIES,
            begin_timestamp=0,
            end_timestamp=_FOREVER_MS,
            unique_key_query=True,
        )
        answer = await self._calls.ask_at(address, RequestCode.QUERY_MESSAGE, header)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return []
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark, address)
        # Brokers also find messages by their keys, and Apache's brokers match only the hash of a key.
        records = decode_records(answer.body)
        return [record for record in records if record.get_property(properties.UNIQUE_KEY) == transaction_id]
