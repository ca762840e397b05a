"""Celery's transport to Redis for a worker that never loses a place: kombu keeps a task's place until Redis confirms its end.

A worker takes as many tasks as it has places. kombu frees a place after Redis has confirmed the acknowledgement, and forgets an
acknowledgement that failed: that place would be lost for good, and a worker without places would take no task again.
"""

import logging
from typing import Any, Final

from kombu.transport import redis, virtual

from rocketmq_broker.world import current_world

MAX_OWED: Final = 1000
"""The most acknowledgements kept for another try. Redis does not learn of further ones, and gives their tasks out again."""

logger = logging.getLogger(__name__)


class ReturningQoS(redis.QoS):
    """The places of one worker. Each is freed when its task ends, or when Redis gives the task to another worker."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes kombu's arguments."""
        super().__init__(*args, **kwargs)
        self._now_s = current_world().steady_s
        self._taken_s: dict[str, float] = {}
        self._owed: dict[str, None] = {}
        """The acknowledgements that Redis lacks, oldest first."""

    def can_consume(self) -> bool:
        """Returns whether a place is free."""
        self._give_back_what_redis_takes_back()
        return super().can_consume()

    def append(self, message: Any, delivery_tag: str) -> None:
        """Takes a place. Takes none if the connection to Redis raises its error."""
        super().append(message, delivery_tag)
        # Redis may give out a task again if it has not been told of its end.
        self._owed.pop(delivery_tag, None)
        self._taken_s[delivery_tag] = self._now_s()

    def ack(self, delivery_tag: str) -> None:
        """Frees the place, and tells Redis now or with a later acknowledgement. Raises nothing."""
        self._give_back(delivery_tag)
        self._owed[delivery_tag] = None
        try:
            with self.pipe_or_acquire() as pipe:
                pipe.zrem(self.unacked_index_key, *self._owed).hdel(self.unacked_key, *self._owed).execute()
        except Exception as error:
            logger.warning("Redis could not be told that a task has ended, and will be with the next one: %s", error)
            while len(self._owed) > MAX_OWED:
                del self._owed[next(iter(self._owed))]
        else:
            self._owed.clear()

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Frees the place; with `requeue` Redis gives the task out again, at once if it can be told. Raises nothing."""
        if not requeue:
            self.ack(delivery_tag)
            return
        self._give_back(delivery_tag)
        try:
            self.restore_by_tag(delivery_tag, leftmost=True)
        except Exception as error:
            logger.warning("a task could not be given back to Redis, which gives it out again by itself: %s", error)

    def _give_back(self, delivery_tag: str) -> None:
        # kombu counts a place for each call.
        if self._taken_s.pop(delivery_tag, None) is not None:
            virtual.QoS.ack(self, delivery_tag)

    def _give_back_what_redis_takes_back(self) -> None:
        """Frees the places of tasks without an end, such as one with an unstored time-out, when Redis gives them out again."""
        overdue_s = self._now_s() - self.visibility_timeout
        while self._taken_s and (oldest := next(iter(self._taken_s.items())))[1] < overdue_s:
            logger.warning("a task has not ended after %d s; its place is free again", self.visibility_timeout)
            self._give_back(oldest[0])


class Channel(redis.Channel):
    """kombu's channel with `ReturningQoS`, and with one client of Redis where kombu makes one for each command."""

    QoS = ReturningQoS
    _kept: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        """Returns the client of the channel's pool, which lends each command a connection; kombu calls this for each command.

        The asynchronous client, which waits for tasks, has a connection of its own: that one is new, as kombu wants it.
        """
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]
        if self._kept is None or self._kept.connection_pool is not self.pool:
            self._kept = super()._create_client()  # type: ignore[misc]
        return self._kept


class Transport(redis.Transport):
    """kombu's transport with this channel."""

    Channel = Channel
