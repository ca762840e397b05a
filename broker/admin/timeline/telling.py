"""The story that the evidence tells: pure, and says what is not on record instead of guessing."""

from __future__ import annotations

from collections.abc import Iterator

from broker.admin.timeline.event import BROKER_MEMORY, COMMIT_LOG, CONSUMER_OFFSETS, NOT_ON_RECORD, Event, Timeline, in_order
from broker.admin.timeline.evidence import Evidence
from broker.message import properties as props
from broker.message.record import host_text
from broker.protocol.bodies import CheckBackInfo


def tell(evidence: Evidence) -> Timeline:
    """The timeline of a transaction."""
    half = evidence.halves[0]
    return Timeline(
        transaction_id=evidence.transaction_id,
        keys=(half.get_property(props.KEYS) or "").split(),
        topic=half.get_property(props.REAL_TOPIC) or "",
        producer_group=half.get_property(props.PRODUCER_GROUP) or "",
        state=_state(evidence),
        events=in_order([*_half_messages(evidence), *_check_backs(evidence), *_end(evidence), *_deliveries(evidence)]),
    )


def _state(evidence: Evidence) -> str:
    if evidence.info is not None:
        return evidence.info.state
    if evidence.committed:
        return "committed"
    return "discarded" if evidence.discarded else "pending or rolled back"


def _half_messages(evidence: Evidence) -> Iterator[Event]:
    first, *copies = evidence.halves
    group, host = first.get_property(props.PRODUCER_GROUP) or "?", host_text(first.born_host)
    what = f"half message of {group} at {host} stored at commit log offset {first.commit_log_offset}: no consumer sees it"
    yield Event(first.store_timestamp, what, COMMIT_LOG)
    if _checks(evidence):
        what = "no decision arrived after the local transaction: it was UNKNOWN, or it was lost, or the producer ended before"
        yield Event(None, what, NOT_ON_RECORD)
    for copy in copies:
        checks = copy.get_property(props.TRANSACTION_CHECK_TIMES) or "0"
        what = f"half message written anew at {copy.commit_log_offset}, {checks} check-backs counted"
        yield Event(copy.store_timestamp, what, COMMIT_LOG)


def _check_backs(evidence: Evidence) -> Iterator[Event]:
    known = evidence.info.check_backs if evidence.info is not None else []
    missing = _checks(evidence) - len(known)
    if missing > 0:
        what = f"{_count(missing, 'check-back')}: when, whom the broker asked and what was answered"
        yield Event(None, what, NOT_ON_RECORD)
    for number, check_back in enumerate(known, start=max(0, missing) + 1):
        yield Event(
            check_back.asked_ms, f"check-back {number}: the broker asks the producer at {check_back.producer}", BROKER_MEMORY
        )
        if check_back.answer is None:
            yield Event(None, f"the answer to check-back {number}", NOT_ON_RECORD)
        else:
            what = f"the producer at {check_back.producer} answers {check_back.answer}"
            yield Event(check_back.answered_ms, what, BROKER_MEMORY)


def _end(evidence: Evidence) -> Iterator[Event]:
    for record in evidence.committed:
        place = f"message visible in queue {record.queue_id} at {record.queue_offset}"
        yield Event(record.store_timestamp, f"COMMIT{_by(evidence, 'COMMIT')}: {place}", COMMIT_LOG)
    for record in evidence.discarded:
        checks = record.get_property(props.TRANSACTION_CHECK_TIMES) or "0"
        yield Event(
            record.store_timestamp,
            f"discarded after {_count(checks, 'check-back')}: rocketmq-admin resume brings it back",
            COMMIT_LOG,
        )
    info = evidence.info
    if info is None:
        if not evidence.committed and not evidence.discarded:
            yield Event(None, "whether it is pending or rolled back: this broker does not tell", NOT_ON_RECORD)
    elif info.state == "rolled back":
        when = info.decided_ms or _answered_ms(info.check_backs, "ROLLBACK")
        what = f"ROLLBACK{_by(evidence, 'ROLLBACK')}: no consumer will see the message"
        yield Event(when, what if when is not None else f"{what}; when is not on record", COMMIT_LOG)
    elif info.state == "pending":
        yield Event(None, "pending: nobody has decided yet", BROKER_MEMORY)


def _by(evidence: Evidence, decision: str) -> str:
    """Who decided, as far as that is on record."""
    if reason := _reason(evidence):
        return f" by hand ({reason})"
    if evidence.info is not None and _answered_ms(evidence.info.check_backs, decision) is not None:
        return ", the answer to a check-back"
    if _checks(evidence):
        return ", from its producer group after a check-back; which client sent it is not on record"
    return ", the producer's decision after its local transaction; which client sent it is not on record"


def _deliveries(evidence: Evidence) -> Iterator[Event]:
    for consumption in evidence.consumptions:
        if consumption.is_consumed:
            what = f"delivered to {consumption.group}: its offset is behind the message; when is not on record"
        else:
            what = f"not consumed by {consumption.group} yet"
        yield Event(None, what, CONSUMER_OFFSETS)
    for group in evidence.groups:
        for record in group.redeliveries:
            what = f"redelivery {record.reconsume_times} to {group.group}: it could not consume the message before"
            yield Event(record.store_timestamp, what, COMMIT_LOG)
        for record in group.dead_letters:
            yield Event(
                record.store_timestamp,
                f"dead letter of {group.group}, after {_count(record.reconsume_times, 'attempt')}",
                COMMIT_LOG,
            )


def _count(count: int | str, noun: str) -> str:
    return f"{count} {noun}" if str(count) == "1" else f"{count} {noun}s"


def _checks(evidence: Evidence) -> int:
    """How often a producer was asked."""
    if evidence.info is not None and evidence.info.checks is not None:
        return evidence.info.checks
    counts = [
        record.get_property(props.TRANSACTION_CHECK_TIMES) or "0"
        for record in (*evidence.halves, *evidence.committed, *evidence.discarded)
    ]
    known = len(evidence.info.check_backs) if evidence.info is not None else 0
    return max(known, *(int(count) for count in counts if count.isdecimal() and len(count) <= 9), 0)


def _reason(evidence: Evidence) -> str | None:
    return evidence.info.reason if evidence.info is not None else None


def _answered_ms(check_backs: list[CheckBackInfo], decision: str) -> int | None:
    return next((one.answered_ms for one in reversed(check_backs) if one.answer == decision), None)
