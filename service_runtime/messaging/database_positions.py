"""A consumer's positions in its service's database, and what a person has to know when that database goes back in time."""

import logging
from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter

from rocketmq_broker.client import MessageQueue, Setback
from service_runtime.database.positions import Positions, QueueName

K = TypeVar("K", bound=Hashable)

logger = logging.getLogger(__name__)


class DatabasePositions(Generic[K]):
    """The positions as a consumer of the broker's client needs them (`rocketmq_broker.client.ResultPositions`)."""

    def __init__(
        self, positions: Positions[K], database: str, service: str, to_do: str, metrics: CollectorRegistry | None = None
    ) -> None:
        """`database` names the database for people: "the credit database"; `service` begins the metric's name.

        `to_do` says what a person has to do after a setback, without a full stop.
        """
        self.positions = positions
        self._database = database
        self._to_do = to_do
        self._setbacks: dict[MessageQueue, Setback] = {}
        self._lacked = None
        if metrics is not None:
            text = "Messages that were delivered again because the database went back in time."
            self._lacked = Counter(f"{service}_messages_lacked", text, registry=metrics)

    def read(self, queue: MessageQueue) -> int | None:
        """Returns the queue's position; None without one. Raises DatabaseUnavailable."""
        return self.positions.read(_name(queue))

    def save(self, offsets: Mapping[MessageQueue, int]) -> Mapping[MessageQueue, int | None]:
        """Saves the positions (`Positions.save`)."""
        queues = {_name(queue): queue for queue in offsets}
        lacking = self.positions.save({name: offsets[queue] for name, queue in queues.items()})
        return {queues[name]: position for name, position in lacking.items()}

    def known_until_ms(self) -> int | None:
        """Returns a time until which all messages have their results. Raises DatabaseUnavailable."""
        return self.positions.known_until_ms()

    def forget(self, queue: MessageQueue) -> None:
        """Drops what is known of a queue."""
        self.positions.forget(_name(queue))

    def begin_again(self, queue: MessageQueue) -> None:
        """Lets the next `save` of a queue lower its position."""
        self.positions.begin_again(_name(queue))

    def forget_results(self) -> None:
        """Drops what is known of results."""
        self.positions.forget_results()

    def went_back(self, setbacks: Sequence[Setback]) -> None:
        """Logs, counts and remembers queues whose messages are delivered again."""
        for setback in setbacks:
            logger.error(
                "%s went back in time: it lacks %d messages of %s, which come again from offset %d; %d of them have expired",
                self._database, setback.consumed - setback.position, setback.queue, setback.position, setback.expired,
            )  # fmt: skip
            self._setbacks[setback.queue] = setback
            if self._lacked is not None:
                self._lacked.inc(setback.consumed - setback.position)

    def attention(self) -> list[str]:
        """Returns what a person has to know, until the service starts again; empty if the database never went back."""
        setbacks = list(self._setbacks.values())
        if not setbacks:
            return []
        lacked = sum(setback.consumed - setback.position for setback in setbacks)
        expired = sum(setback.expired for setback in setbacks)
        is_new = all(setback.is_new_database for setback in setbacks)
        what = "has no results at all, and" if is_new else "went back in time:"
        again = f"{lacked - expired} are delivered again by themselves"
        lost = f", and {expired} have expired at the broker: only `reconcile` finds their orders" if expired else ""
        return [
            f"{self._database} {what} it lacked {lacked} messages of {len(setbacks)} queues; {again}{lost}. {self._to_do}."
            " A restart of the service ends this line: docs/services.md, A database that goes back"
        ]


def _name(queue: MessageQueue) -> QueueName:
    return QueueName(queue.topic, queue.broker_name, queue.queue_id)
