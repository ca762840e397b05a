"""A Redis transport for Celery that frees a worker's slot even if Redis does not confirm the end of its task.

A worker takes as many tasks as it has slots. kombu frees a slot only after Redis has confirmed the acknowledgement, and drops an
acknowledgement that failed. That slot would be lost permanently, and a worker without slots would take no more tasks.
"""

import logging
from typing import Any, Final

from kombu.transport import redis, virtual

from rocketmq_broker.world import current_world

MAX_OWED: Final = 1000
"""The maximum number of acknowledgements kept for another attempt. Others are dropped, so Redis delivers their tasks again."""

logger = logging.getLogger(__name__)


class ReturningQoS(redis.QoS):
    """The slots of one worker. A slot is freed when its task ends, or when Redis delivers the task to another worker."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Passes the arguments to kombu's class."""
        super().__init__(*args, **kwargs)
        self._now_s = current_world().steady_s
        self._taken_s: dict[str, float] = {}
        self._owed: dict[str, None] = {}
        """The ids of the acknowledgements that Redis has not confirmed, oldest first."""

    def can_consume(self) -> bool:
        """Returns True if a slot is free."""
        self._give_back_what_redis_takes_back()
        return super().can_consume()

    def append(self, message: Any, delivery_tag: str) -> None:
        """Occupies a slot for the task, unless the connection to Redis fails with an error."""
        super().append(message, delivery_tag)
        # Redis may deliver a task again if it has not received the acknowledgement.
        self._owed.pop(delivery_tag, None)
        self._taken_s[delivery_tag] = self._now_s()

    def ack(self, delivery_tag: str) -> None:
        """Frees the slot, and sends the acknowledgement to Redis now or together with a later one. Raises nothing."""
        self._give_back(delivery_tag)
        self._owed[delivery_tag] = None
        try:
            with self.pipe_or_acquire() as pipe:
                pipe.zrem(self.unacked_index_key, *self._owed).hdel(self.unacked_key, *self._owed).execute()
        except Exception as error:
            logger.warning("a task could not be acknowledged in Redis; retrying with the next one: %s", error)
            while len(self._owed) > MAX_OWED:
                del self._owed[next(iter(self._owed))]
        else:
            self._owed.clear()

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Frees the slot. Raises nothing.

        With `requeue` Redis delivers the task again, immediately if Redis is available.
        """
        if not requeue:
            self.ack(delivery_tag)
            return
        self._give_back(delivery_tag)
        try:
            self.restore_by_tag(delivery_tag, leftmost=True)
        except Exception as error:
            logger.warning("a task could not be returned to Redis, which redelivers it later: %s", error)

    def _give_back(self, delivery_tag: str) -> None:
        # kombu occupies a slot at each call.
        if self._taken_s.pop(delivery_tag, None) is not None:
            virtual.QoS.ack(self, delivery_tag)

    def _give_back_what_redis_takes_back(self) -> None:
        """Frees the slots of tasks that never ended, after Redis has made these tasks available again.

        An example is a task with a time-out that could not be stored.
        """
        overdue_s = self._now_s() - self.visibility_timeout
        while self._taken_s and (oldest := next(iter(self._taken_s.items())))[1] < overdue_s:
            logger.warning("a task has not ended after %d s; its slot is free again", self.visibility_timeout)
            self._give_back(oldest[0])


class Channel(redis.Channel):
    """kombu's channel with `ReturningQoS` and a single Redis client, because kombu would create one for each command."""

    QoS = ReturningQoS
    _kept: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        """Returns the Redis client of the channel's connection pool. kombu calls this for each command.

        The asynchronous client, which waits for tasks, is a new one with a separate connection, as kombu requires.
        """
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]
        if self._kept is None or self._kept.connection_pool is not self.pool:
            self._kept = super()._create_client()  # type: ignore[misc]
        return self._kept


class Transport(redis.Transport):
    """kombu's Redis transport, with this module's channel."""

    Channel = Channel
