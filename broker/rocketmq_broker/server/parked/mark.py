"""Encodes and decodes marks, which record operators' actions on parked messages. RocketMQ has no marks.

    topic rmq_sys_PARKED_MARK_TOPIC, queue 0, tag = the treatment
    body = topic, queue id, queue offset and commit log offset of the parked message: `%DLQ%credits 0 17 4711`
    REASON = the operator's reason; RETRIES = number of retries of the message; PREVIOUS = queue offset of its previous mark
    born host and store timestamp = the client's address, and the time

A mark is stored after its message in the commit log, so the message expires first.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.message.record import decode_record, host_text

MARK_TOPIC: Final = topics.PARKED_MARK_TOPIC.encode()

_REASON: Final = "REASON"
_RETRIES: Final = "RETRIES"
_PREVIOUS: Final = "PREVIOUS"


class NotAMark(Exception):
    """Raised if a record in the mark topic is not a mark."""


class Treatment(StrEnum):
    """The possible actions of an operator on a parked message."""

    RETRIED = "retried"
    """The dead letter was delivered to its consumer group again."""
    DISMISSED = "dismissed"
    """The dead letter needs no further attention."""
    RESUMED = "resumed"
    """Check-backs of the discarded message were resumed."""


class ParkedPlace(NamedTuple):
    """The location of a parked message: topic, queue id, queue offset and commit log offset."""

    topic: bytes
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    """The commit log offset of the message.

    It distinguishes messages that have the same queue offset because the topic was deleted and created again.
    """


@dataclass(frozen=True, slots=True)
class Mark:
    """A record of an operator's action on one parked message."""

    place: ParkedPlace
    treatment: Treatment
    reason: str
    retries: int
    """The number of retries of the message, including this one."""
    previous: int | None
    """The queue offset of the message's previous mark."""
    queue_offset: int
    """The queue offset of this mark in the mark topic."""
    at_ms: int
    by: str
    """The address of the client that sent the operator's request."""


def mark_body(place: ParkedPlace) -> bytes:
    """Encodes the location of a parked message."""
    return b"%b %d %d %d" % place


def mark_properties(treatment: Treatment, *, reason: str, retries: int, previous: int | None) -> bytes:
    """Encodes a treatment and its reason. Raises IllegalMessage if the reason contains a separator of properties."""
    found = {props.TAGS: treatment.value, _REASON: reason, _RETRIES: str(retries)}
    if previous is not None:
        found[_PREVIOUS] = str(previous)
    return props.encode({name: value for name, value in found.items() if value})


def read_mark(data: bytes) -> Mark:
    """Decodes a record as a mark. Raises CorruptRecord, NotAMark."""
    record = decode_record(data)
    try:
        topic, *numbers = record.body.split(b" ")
        place = ParkedPlace(topic, *map(int, numbers))
        treatment = Treatment(record.get_property(props.TAGS) or "")
        previous = record.get_property(_PREVIOUS)
        return Mark(
            place,
            treatment,
            reason=record.get_property(_REASON) or "",
            retries=int(record.get_property(_RETRIES) or 0),
            previous=int(previous) if previous is not None else None,
            queue_offset=record.queue_offset,
            at_ms=record.store_timestamp,
            by=host_text(record.born_host),
        )
    except (ValueError, TypeError) as error:
        offset = record.commit_log_offset
        raise NotAMark(
            f"the record at commit log offset {offset} is not a valid operator mark of a parked message: {error}"
        ) from None
