"""Requests the numbers of parked messages from brokers. Parked messages are discarded half messages and dead letters."""

from collections.abc import Callable
from typing import Final

from rocketmq_broker.client.errors import BrokerError
from rocketmq_broker.client.instance.broker_calls import BrokerCalls
from rocketmq_broker.client.instance.calls import ask_for_success
from rocketmq_broker.message import topics
from rocketmq_broker.protocol.bodies.parked_admin import ParkedCounts
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.protocol.headers.pull import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
)

TIMEOUT_MS: Final = 1000
"""The timeout of a request in milliseconds, which is short because a status request must not block."""


class ParkedRequests:
    """Counts parked messages at one broker. All methods raise BrokerUnreachable, RequestTimedOut or BrokerError."""

    def __init__(self, calls: BrokerCalls) -> None:
        """Stores `calls`, which sends the requests."""
        self._calls = calls

    async def discarded(self, address: str, producer_group: str) -> int:
        """Returns the number of the group's discarded messages that have not been resumed.

        Apache's brokers record neither groups nor resumptions. For them, returns the number of all messages in
        TRANS_CHECK_MAX_TIME_TOPIC.
        """
        return await self._counted(address, lambda counts: counts.discarded.get(producer_group, 0), topics.CHECK_MAX_TIME_TOPIC)

    async def dead_letters(self, address: str, consumer_group: str) -> int:
        """Returns the number of the group's dead letters that have not been handled.

        For Apache's brokers, counts all dead letters of the group.
        """
        topic = topics.dead_letter_topic(consumer_group)
        return await self._counted(address, lambda counts: counts.dead_letters.get(consumer_group, 0), topic)

    async def _counted(self, address: str, of_group: Callable[[ParkedCounts], int], topic: str) -> int:
        """Returns the group's count, or the number of messages in `topic` if the broker does not support counting."""
        try:
            answer = await self._calls.ask_at(address, AdminRequestCode.COUNT_PARKED_MESSAGES, None, timeout_ms=TIMEOUT_MS)
            if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                return await self._stored(address, topic)
            if answer.code != ResponseCode.SUCCESS:
                raise BrokerError(answer.code, answer.remark, address)
            return of_group(ParkedCounts.decode(answer.body))
        except ProtocolError as error:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"the response cannot be decoded: {error}", address) from error

    async def _stored(self, address: str, topic: str) -> int:
        first = await self._ask(address, RequestCode.GET_MIN_OFFSET, GetMinOffsetRequestHeader(topic=topic, queue_id=0))
        end = await self._ask(address, RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader(topic=topic, queue_id=0))
        first_offset = max(0, first.decode_header(GetMinOffsetResponseHeader).offset)
        return max(0, end.decode_header(GetMaxOffsetResponseHeader).offset - first_offset)

    async def _ask(self, address: str, code: RequestCode, header: CommandHeader) -> RemotingCommand:
        return await ask_for_success(self._calls.remoting, address, code, header, timeout_ms=TIMEOUT_MS)
