"""Builds a transaction's timeline from the brokers' records. The timeline reports which records are missing."""

from collections.abc import Iterator, Sequence

from rocketmq_broker.admin.output.numbers import counted
from rocketmq_broker.admin.timeline.event import (
    BROKER,
    BROKER_MEMORY,
    COMMIT_LOG,
    CONSUMER_OFFSETS,
    NOT_ON_RECORD,
    OPERATOR,
    Arrow,
    Event,
    Timeline,
    in_order,
)
from rocketmq_broker.admin.timeline.evidence import TimelineEvidence
from rocketmq_broker.admin.timeline.folding import WRITTEN_AGAIN
from rocketmq_broker.message import properties as props
from rocketmq_broker.message.record import host_text


def build_timeline(evidence: TimelineEvidence, witnessed: Sequence[Event] = ()) -> Timeline:
    """Returns the timeline of a transaction. `witnessed` are events that other programs recorded, with times."""
    half = evidence.halves[0]
    before, after = _split(witnessed, _first_step_after_the_producer(evidence))
    return Timeline(
        transaction_id=evidence.transaction_id,
        keys=(half.get_property(props.KEYS) or "").split(),
        topic=half.get_property(props.REAL_TOPIC) or "",
        producer_group=half.get_property(props.PRODUCER_GROUP) or "",
        state=_state(evidence),
        events=[
            *in_order(
                [
                    *_half_messages(evidence, before),
                    *_check_backs(evidence),
                    *_end(evidence),
                    *_deliveries(evidence, after),
                    *after,
                ]
            ),
            *_not_consumed(evidence, after),
        ],
    )


def _first_step_after_the_producer(evidence: TimelineEvidence) -> int | None:
    """Returns the time of the broker's first action after it stored the half message; None if no such time is known."""
    times = [check_back.asked_ms for check_back in evidence.check_backs]
    times += [record.store_timestamp for record in (*evidence.halves[1:], *evidence.committed, *evidence.discarded)]
    if evidence.info is not None and evidence.info.decided_ms is not None:
        times.append(evidence.info.decided_ms)
    return min(times, default=None)


def _split(witnessed: Sequence[Event], at_ms: int | None) -> tuple[list[Event], list[Event]]:
    """Splits the events into those up to `at_ms` and the rest. Both lists are sorted by time."""
    witnessed = sorted(witnessed, key=lambda event: event.at_ms or 0)
    before = [event for event in witnessed if at_ms is None or (event.at_ms or 0) <= at_ms]
    return before, [event for event in witnessed if event not in before]


def _state(evidence: TimelineEvidence) -> str:
    if evidence.info is not None:
        return evidence.info.state
    if evidence.committed:
        return "committed"
    return "discarded" if evidence.discarded else "pending or rolled back"


def _half_messages(evidence: TimelineEvidence, before: Sequence[Event]) -> Iterator[Event]:
    """Yields the half message, the events in `before`, a missing decision, and the copies of the half message."""
    first, *copies = evidence.halves
    producer, host = _producer(evidence), host_text(first.born_host)
    what = f"half message of {producer} at {host} stored at commit log offset {first.commit_log_offset}: no consumer sees it"
    yield Event(first.store_timestamp, what, COMMIT_LOG, Arrow(producer, BROKER, "half message"))
    yield from before
    if _checks(evidence) and not any(_explains(event, producer) for event in before):
        what = (
            "no decision arrived before the first check-back: the local transaction was still running, or it answered UNKNOWN, "
            "or its decision was lost, or the producer had ended"
        )
        yield Event(None, what, NOT_ON_RECORD, Arrow(producer, BROKER, "no decision", is_lost=True))
    for copy in copies:
        checks = copy.get_property(props.TRANSACTION_CHECK_TIMES) or "0"
        what = f"half message written again at {copy.commit_log_offset}, {counted(checks, 'check-back')} counted"
        yield Event(copy.store_timestamp, what, COMMIT_LOG, Arrow(BROKER, BROKER, WRITTEN_AGAIN))


def _explains(event: Event, producer: str) -> bool:
    """Returns whether an event of another program explains why no decision arrived.

    This is the case for a step of the producer itself, a message from the producer to the broker, and a lost response
    to the producer.
    """
    arrow = event.arrow
    if arrow is None:
        return False
    is_lost_answer = arrow.is_lost and arrow.receiver == producer and not arrow.label.startswith("check-back")
    return is_lost_answer or (arrow.sender == producer and arrow.receiver in (producer, BROKER))


def _check_backs(evidence: TimelineEvidence) -> Iterator[Event]:
    producer = _producer(evidence)
    missing = _checks(evidence) - len(evidence.check_backs)
    if missing > 0:
        what = f"{counted(missing, 'check-back')}: times, producers and answers"
        yield Event(None, what, NOT_ON_RECORD, Arrow(BROKER, producer, counted(missing, "check-back")))
    for number, check_back in enumerate(evidence.check_backs, start=max(0, missing) + 1):
        what = f"check-back {number}: the broker asks the producer at {check_back.producer}"
        yield Event(check_back.asked_ms, what, BROKER_MEMORY, Arrow(BROKER, producer, f"check-back {number}"))
        if check_back.answer is None:
            arrow = Arrow(producer, BROKER, "no answer", is_lost=True)
            yield Event(None, f"the answer to check-back {number}", NOT_ON_RECORD, arrow)
        else:
            why = f": {check_back.failure}" if check_back.failure else ""
            what = f"the producer at {check_back.producer} answers {check_back.answer}{why}"
            yield Event(check_back.answered_ms, what, BROKER_MEMORY, Arrow(producer, BROKER, check_back.answer))


def _end(evidence: TimelineEvidence) -> Iterator[Event]:
    for record in evidence.committed:
        place = f"message visible in queue {record.queue_id} at {record.queue_offset}"
        arrow = _decision_arrow(evidence, "COMMIT", f"visible in queue {record.queue_id}")
        yield Event(record.store_timestamp, f"COMMIT{_by(evidence, 'COMMIT')}: {place}", COMMIT_LOG, arrow)
    for record in evidence.discarded:
        checks = record.get_property(props.TRANSACTION_CHECK_TIMES) or "0"
        yield Event(
            record.store_timestamp,
            f"discarded after {counted(checks, 'check-back')}: rocketmq-admin resume resumes its check-backs",
            COMMIT_LOG,
            Arrow(BROKER, BROKER, "discarded"),
        )
    info = evidence.info
    if info is None:
        if not evidence.committed and not evidence.discarded:
            yield Event(None, "whether it is pending or rolled back: this broker does not report it", NOT_ON_RECORD)
    elif info.state == "rolled back":
        when = info.decided_ms or _answered_ms(evidence, "ROLLBACK")
        what = f"ROLLBACK{_by(evidence, 'ROLLBACK')}: no consumer will see the message"
        arrow = _decision_arrow(evidence, "ROLLBACK", "rolled back")
        yield Event(when, what if when is not None else f"{what}; the time is not on record", COMMIT_LOG, arrow)
    elif info.state == "pending":
        yield Event(None, "pending: no decision yet", BROKER_MEMORY)


def _decision_arrow(evidence: TimelineEvidence, decision: str, effect: str) -> Arrow:
    """Returns the arrow of a decision, or of its effect only if the response to a check-back already shows the decision."""
    if _reason(evidence):
        return Arrow(OPERATOR, BROKER, f"{decision} by hand")
    if _answered_ms(evidence, decision) is not None:
        return Arrow(BROKER, BROKER, effect)
    return Arrow(_producer(evidence), BROKER, decision)


def _by(evidence: TimelineEvidence, decision: str) -> str:
    """Returns a phrase that describes the recorded origin of a decision."""
    if reason := _reason(evidence):
        return f" by hand ({reason})"
    if _answered_ms(evidence, decision) is not None:
        return ", the answer to a check-back"
    if _checks(evidence):
        return ", from its producer group after a check-back; which client sent it is not on record"
    return " from its producer group; no check-back before it is on record"


def _deliveries(evidence: TimelineEvidence, after: Sequence[Event]) -> Iterator[Event]:
    for consumption in evidence.consumptions:
        arrow = Arrow(BROKER, consumption.group, "message")
        if consumption.is_consumed:
            what = f"delivered to {consumption.group}: its offset is after the message; the time is not on record"
            yield Event(None, what, CONSUMER_OFFSETS, arrow)
        elif _works_on_it(consumption.group, after):
            yield Event(
                None,
                f"delivered to {consumption.group}, according to its next step; the time is not on record",
                NOT_ON_RECORD,
                arrow,
            )
    for group in evidence.groups:
        for record in group.redeliveries:
            what = f"redelivery {record.reconsume_times} to {group.group}: the attempt before failed"
            arrow = Arrow(BROKER, group.group, f"redelivery {record.reconsume_times}")
            yield Event(record.store_timestamp, what, COMMIT_LOG, arrow)
        for record in group.dead_letters:
            yield Event(
                record.store_timestamp,
                f"dead letter of {group.group}, after {counted(record.reconsume_times, 'attempt')}",
                COMMIT_LOG,
                Arrow(group.group, BROKER, "dead letter"),
            )


def _not_consumed(evidence: TimelineEvidence, after: Sequence[Event]) -> Iterator[Event]:
    """Yields an event for each consumer group that has not consumed the message. The timeline ends with these events."""
    for consumption in evidence.consumptions:
        if consumption.is_consumed:
            continue
        if _works_on_it(consumption.group, after):
            what = f"{consumption.group} has not acknowledged it yet: its offset at the broker is not after the message"
        else:
            what = f"not consumed by {consumption.group} yet: its offset at the broker is not after the message"
        yield Event(None, what, CONSUMER_OFFSETS)


def _works_on_it(group: str, after: Sequence[Event]) -> bool:
    """Returns whether the group is the sender of one of these events, which other programs recorded."""
    return any(event.arrow is not None and event.arrow.sender == group for event in after)


def _checks(evidence: TimelineEvidence) -> int:
    """Returns the number of check-backs that the broker has sent."""
    if evidence.info is not None and evidence.info.checks is not None:
        return evidence.info.checks
    counts = [
        record.get_property(props.TRANSACTION_CHECK_TIMES) or "0"
        for record in (*evidence.halves, *evidence.committed, *evidence.discarded)
    ]
    return max(len(evidence.check_backs), *(int(count) for count in counts if count.isdecimal() and len(count) <= 9), 0)


def _producer(evidence: TimelineEvidence) -> str:
    return evidence.halves[0].get_property(props.PRODUCER_GROUP) or "?"


def _reason(evidence: TimelineEvidence) -> str | None:
    return evidence.info.reason if evidence.info is not None else None


def _answered_ms(evidence: TimelineEvidence, decision: str) -> int | None:
    """Returns the time of the last answer to a check-back that is this decision; None if there is none."""
    return next((one.answered_ms for one in reversed(evidence.check_backs) if one.answer == decision), None)
