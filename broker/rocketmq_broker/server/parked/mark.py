"""Marks: records of the treatment of parked messages by persons. RocketMQ has no marks.

    topic rmq_sys_PARKED_MARK_TOPIC, queue 0, tag = the treatment
    body = topic, queue id, queue offset and commit log offset of the parked message: `%DLQ%credits 0 17 4711`
    REASON = why; RETRIES = how often the message was retried in all; PREVIOUS = queue offset of the mark before this one
    born host and store timestamp = who did it, and when

A mark lies behind its message in the commit log, so the message expires first.
"""

from __future__ import annotations

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
    """A record of the mark topic that is not a mark."""


class Treatment(StrEnum):
    """A person's treatment of a parked message."""

    RETRIED = "retried"
    """The dead letter was given to its consumer group once more."""
    DISMISSED = "dismissed"
    """The dead letter needs no further attention."""
    RESUMED = "resumed"
    """The discarded message is checked again."""


class ParkedPlace(NamedTuple):
    """The position of a parked message."""

    topic: bytes
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    """It distinguishes the message from one with the same queue offset before the topic was deleted and created again."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One treatment of one parked message."""

    place: ParkedPlace
    treatment: Treatment
    reason: str
    retries: int
    """The number of all retries of the message, including this one."""
    previous: int | None
    """The queue offset of the mark before this one."""
    queue_offset: int
    """The mark's own."""
    at_ms: int
    by: str
    """The address that the request came from."""


def mark_body(place: ParkedPlace) -> bytes:
    """Encodes the place of a marked message."""
    return b"%b %d %d %d" % place


def mark_properties(treatment: Treatment, *, reason: str, retries: int, previous: int | None) -> bytes:
    """Encodes a treatment and its reason. Raises IllegalMessage if the reason holds \x01 or \x02."""
    found = {props.TAGS: treatment.value, _REASON: reason, _RETRIES: str(retries)}
    if previous is not None:
        found[_PREVIOUS] = str(previous)
    return props.encode({name: value for name, value in found.items() if value})


def read_mark(data: bytes) -> Mark:
    """Decodes the mark of a record. Raises CorruptRecord, NotAMark."""
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
        raise NotAMark(f"the record at {record.commit_log_offset} is no mark: {error}") from None
