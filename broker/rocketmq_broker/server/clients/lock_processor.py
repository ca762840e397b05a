"""Handles the requests of orderly consumers that lock and unlock queues (part of RocketMQ's AdminBrokerProcessor)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from rocketmq_broker.message.steps import finish
from rocketmq_broker.protocol.bodies.group import LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.queue_table import MessageQueueData
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Answer, Handler, RequestRefused, Steps
from rocketmq_broker.server.clients.queue_locks import QueueLocks, TooManyLocks
from rocketmq_broker.server.topics.names import refuse_as_consumer

MAX_BODY_LENGTH: Final = 2 * 1024 * 1024
"""The maximum length of a request body in bytes: enough for three topics with the maximum number of queues.

The broker decodes a body of this length in about 25 ms.
"""
QUEUES_AT_ONCE: Final = 1000


class LockProcessor:
    """Locks and unlocks queues for orderly consumers."""

    def __init__(self, *, clock: Callable[[], int]) -> None:
        self._locks: QueueLocks[MessageQueueData] = QueueLocks()
        self._clock = clock

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of requests to lock and unlock queues."""
        return {RequestCode.LOCK_BATCH_MQ: self.lock, RequestCode.UNLOCK_BATCH_MQ: self.unlock}

    def lock(self, connection: Connection, command: RemotingCommand) -> Answer | Steps:
        """Locks queues for a consumer. Responds with the requested queues whose locks the consumer now holds."""
        _refuse_long(command)
        wanted = LockBatchRequestBody.decode(command.body)
        refuse_as_consumer(wanted.consumer_group)
        return _at_once_if_short(self._lock(command, wanted), len(wanted.mq_set))

    def unlock(self, connection: Connection, command: RemotingCommand) -> Answer | Steps:
        """Releases the locks of a consumer."""
        _refuse_long(command)
        given_back = UnlockBatchRequestBody.decode(command.body)
        return _at_once_if_short(self._unlock(command, given_back), len(given_back.mq_set))

    def forget_expired(self) -> Iterator[None]:
        """Removes expired locks, in steps. Call it every few seconds."""
        return self._locks.forget_expired(self._clock())

    def _lock(self, command: RemotingCommand, wanted: LockBatchRequestBody) -> Steps:
        locked: list[MessageQueueData] = []
        queues = list(wanted.mq_set)
        for first in range(0, len(queues), QUEUES_AT_ONCE):
            part = queues[first : first + QUEUES_AT_ONCE]
            try:
                locked += self._locks.lock(wanted.consumer_group, part, wanted.client_id, self._clock())
            except TooManyLocks as error:
                raise RequestRefused(ResponseCode.SYSTEM_BUSY, str(error)) from None
            yield
        return encode_response(command, ResponseCode.SUCCESS, body=LockBatchResponseBody(lock_ok_mq_set=locked).encode())

    def _unlock(self, command: RemotingCommand, given_back: UnlockBatchRequestBody) -> Steps:
        queues = list(given_back.mq_set)
        for first in range(0, len(queues), QUEUES_AT_ONCE):
            part = queues[first : first + QUEUES_AT_ONCE]
            self._locks.unlock(given_back.consumer_group, part, given_back.client_id)
            yield
        return encode_response(command, ResponseCode.SUCCESS)


def _at_once_if_short(steps: Steps, queues: int) -> Answer | Steps:
    return finish(steps) if queues <= QUEUES_AT_ONCE else steps


def _refuse_long(command: RemotingCommand) -> None:
    if len(command.body) > MAX_BODY_LENGTH:
        remark = f"queue list too long: {len(command.body)} bytes, limit {MAX_BODY_LENGTH}; lock the queues in several requests"
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
