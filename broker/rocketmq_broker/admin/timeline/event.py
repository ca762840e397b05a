"""The events of a transaction. Each event names the part of the system that recorded it."""

import msgspec

COMMIT_LOG = "commit log"
BROKER_MEMORY = "broker's memory"
CONSUMER_OFFSETS = "consumer offsets"
NOT_ON_RECORD = "not on record"

BROKER = "broker"
OPERATOR = "operator"


class Arrow(msgspec.Struct, frozen=True, rename="camel"):
    """An arrow of a sequence diagram."""

    sender: str
    receiver: str
    """The participant that the arrow points to. Equal to the sender for a step without a message."""
    label: str
    is_lost: bool = False
    """Whether the message did not arrive."""


class Event(msgspec.Struct, frozen=True, rename="camel"):
    """A step of a transaction, with its time and its source."""

    at_ms: int | None
    """The time in milliseconds since the epoch; None if the time is not on record."""
    what: str
    on_record: str
    """The part of the system that recorded the event."""
    arrow: Arrow | None = None
    """The arrow in the sequence diagram; None for an event without an arrow."""


class Timeline(msgspec.Struct, frozen=True, rename="camel"):
    """The history of a transaction, from its half message to its deliveries."""

    transaction_id: str
    keys: list[str]
    topic: str
    producer_group: str
    state: str
    events: list[Event]


def in_order(events: list[Event]) -> list[Event]:
    """Returns the events sorted by time. An event without a time stays after its predecessor."""
    keyed, latest_ms = [], 0
    for rank, event in enumerate(events):
        latest_ms = latest_ms if event.at_ms is None else event.at_ms
        keyed.append((latest_ms, rank, event))
    return [event for _, _, event in sorted(keyed, key=lambda one: one[:2])]
