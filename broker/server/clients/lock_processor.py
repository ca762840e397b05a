"""Locks on queues, by which one consumer of a group consumes each of them in order (from RocketMQ's AdminBrokerProcessor)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker.protocol.bodies import LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody
from broker.protocol.codes import RequestCode, ResponseCode
from broker.protocol.command import RemotingCommand, encode_response
from broker.protocol.queue_table import MessageQueueData
from broker.remoting.connection import Connection
from broker.remoting.dispatcher import Handler
from broker.server.clients.queue_locks import QueueLocks
from broker.server.topics.names import refuse_as_consumer


class LockProcessor:
    """Gives and takes back locks."""

    def __init__(self, *, clock: Callable[[], int]) -> None:
        self._locks: QueueLocks[MessageQueueData] = QueueLocks()
        self._clock = clock

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Orderly consumers lock queues, and let them go."""
        return {RequestCode.LOCK_BATCH_MQ: self.lock, RequestCode.UNLOCK_BATCH_MQ: self.unlock}

    def lock(self, connection: Connection, command: RemotingCommand) -> bytes:
        """A consumer wants queues for itself; it is told which ones it has now."""
        wanted = LockBatchRequestBody.decode(command.body)
        refuse_as_consumer(wanted.consumer_group)
        locked = self._locks.lock(wanted.consumer_group, wanted.mq_set, wanted.client_id, self._clock())
        return encode_response(command, ResponseCode.SUCCESS, body=LockBatchResponseBody(lock_ok_mq_set=locked).encode())

    def unlock(self, connection: Connection, command: RemotingCommand) -> bytes:
        """A consumer gives queues back."""
        given_back = UnlockBatchRequestBody.decode(command.body)
        self._locks.unlock(given_back.consumer_group, given_back.mq_set, given_back.client_id)
        return encode_response(command, ResponseCode.SUCCESS)
