"""Connects a consumer to the positions in its service's database, and reports a reset of that database to an older state."""

import logging
from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter

from rocketmq_broker.client import MessageQueue, Setback
from service_runtime.database.positions import Positions, QueueName

K = TypeVar("K", bound=Hashable)

logger = logging.getLogger(__name__)


class DatabasePositions(Generic[K]):
    """Implements `rocketmq_broker.client.ResultPositions` with the service's database."""

    def __init__(self, positions: Positions[K], service: str, to_do: str, metrics: CollectorRegistry | None = None) -> None:
        """`service` is the first word of the service's name, and `to_do` the advice after a reset, without a full stop."""
        self.positions = positions
        self._database = f"the {service} database"
        self._to_do = to_do
        self._setbacks: dict[MessageQueue, Setback] = {}
        text = "Messages that were redelivered because the database was reset to an older state."
        self._lacked = Counter(f"{service}_messages_lacked", text, registry=metrics)

    def read(self, queue: MessageQueue) -> int | None:
        """Returns the queue's position, or None if it has none. Raises DatabaseUnavailable."""
        return self.positions.read(_name(queue))

    def save(self, offsets: Mapping[MessageQueue, int]) -> Mapping[MessageQueue, int | None]:
        """Saves the positions; see `Positions.save`."""
        queues = {_name(queue): queue for queue in offsets}
        lacking = self.positions.save({name: offsets[queue] for name, queue in queues.items()})
        return {queues[name]: position for name, position in lacking.items()}

    def known_until_ms(self) -> int | None:
        """Returns the time until which the results are complete. Raises DatabaseUnavailable."""
        return self.positions.known_until_ms()

    def forget(self, queue: MessageQueue) -> None:
        """Forgets the saved position of a queue."""
        self.positions.forget(_name(queue))

    def begin_again(self, queue: MessageQueue) -> None:
        """Allows the next `save` to lower the queue's position."""
        self.positions.begin_again(_name(queue))

    def forget_results(self) -> None:
        """Forgets the acknowledged results."""
        self.positions.forget_results()

    def went_back(self, setbacks: Sequence[Setback]) -> None:
        """Logs and counts the messages that are redelivered after a reset, and stores the setbacks for `attention`."""
        for setback in setbacks:
            logger.error(
                "%s was reset to an older state: it lacks %d messages of %s, redelivered from offset %d; %d of them have expired",
                self._database, setback.consumed - setback.position, setback.queue, setback.position, setback.expired,
            )  # fmt: skip
            self._setbacks[setback.queue] = setback
            self._lacked.inc(setback.consumed - setback.position)

    def attention(self) -> list[str]:
        """Returns a line for operators, until the service restarts. Returns an empty list if the database was not reset."""
        setbacks = list(self._setbacks.values())
        if not setbacks:
            return []
        lacked = sum(setback.consumed - setback.position for setback in setbacks)
        expired = sum(setback.expired for setback in setbacks)
        is_new = all(setback.is_new_database for setback in setbacks)
        what = "has no results at all, and" if is_new else "was reset to an older state:"
        again = f"{lacked - expired} are redelivered"
        lost = f", and {expired} have expired at the broker; run `reconcile` to find their orders" if expired else ""
        return [
            f"{self._database} {what} it lacked {lacked} messages of {len(setbacks)} queues; {again}{lost}. {self._to_do}."
            " This line disappears when the service restarts. See docs/services.md, A database that goes back"
        ]


def _name(queue: MessageQueue) -> QueueName:
    return QueueName(queue.topic, queue.broker_name, queue.queue_id)
