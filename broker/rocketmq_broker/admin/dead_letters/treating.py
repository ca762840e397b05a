"""Retries and dismisses dead letters.

For Apache's brokers, the tool itself sends a retried message to the group's retry topic.
"""

from typing import Final

from rocketmq_broker.admin.dead_letters.dead_letter import Treated
from rocketmq_broker.admin.dead_letters.finding import FoundLetter
from rocketmq_broker.admin.dead_letters.treatments import treatment_of
from rocketmq_broker.admin.errors import NotSupported, Refused
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag, topics
from rocketmq_broker.message.dead_letters import retried_properties, retries_of
from rocketmq_broker.protocol.headers.parked_admin import DismissDeadLetterRequestHeader, RetryDeadLetterRequestHeader
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeaderV2

PRODUCER_GROUP: Final = "DEAD_LETTER_RETRY"
"""The producer group with which the tool sends to Apache's brokers."""


def single_match(found: list[FoundLetter], word: str) -> FoundLetter:
    """Returns the only untreated dead letter, or the only dead letter if all are treated.

    Raises Refused if several dead letters match.
    """
    candidates = [one for one in found if one.letter.treatment is None] or found
    if len(candidates) > 1:
        ids = ", ".join(f"{one.letter.offset_message_id} ({one.letter.consumer_group})" for one in candidates)
        raise Refused(f"{len(candidates)} dead letters match {word}: choose one by its offset message id: {ids}")
    return candidates[0]


def refuse_if_treated(found: FoundLetter, *, again: bool) -> None:
    """Raises Refused if the dead letter was treated before and `again` is False."""
    letter = found.letter
    if letter.treatment is not None and not again:
        done = letter.treatment.treatment
        raise Refused(f"the dead letter {letter.offset_message_id} was already {done}: use --again to retry it anyway")


async def retry(found: FoundLetter, *, again: bool, reason: str) -> Treated:
    """Delivers a dead letter to its own group once more. Raises Refused if it was treated before and `again` is False."""
    header = RetryDeadLetterRequestHeader(found.letter.commit_log_offset, again, reason)
    try:
        return treatment_of(await found.requests.retry(header))
    except NotSupported:
        return await _retry_at_apaches(found, again=again)


async def dismiss(found: FoundLetter, *, reason: str) -> Treated:
    """Marks a dead letter as dismissed. Raises Refused if it was treated before, and NotSupported for Apache's brokers."""
    header = DismissDeadLetterRequestHeader(found.letter.commit_log_offset, reason)
    return treatment_of(await found.requests.dismiss(header))


async def _retry_at_apaches(found: FoundLetter, *, again: bool) -> Treated:
    letter, record = found.letter, found.record
    refuse_if_treated(found, again=again)
    if not letter.topic:
        raise Refused(f"the dead letter {letter.offset_message_id} has no property RETRY_TOPIC: its original topic is unknown")
    before = letter.treatment.retries if letter.treatment is not None else 0
    retries = max(retries_of(record), before) + 1
    # With the property TRAN_MSG the broker would treat it as the half message of a new transaction.
    kept = props.remove(retried_properties(record, retries), (props.TRANSACTION_PREPARED,))
    header = SendMessageRequestHeaderV2(
        producer_group=PRODUCER_GROUP,
        topic=topics.retry_topic(letter.consumer_group),
        default_topic=topics.AUTO_CREATE_TOPIC,
        default_topic_queue_nums=1,
        queue_id=0,
        sys_flag=record.sys_flag & (sysflag.COMPRESSED | sysflag.COMPRESSION_MASK),
        born_timestamp=record.born_timestamp,
        flag=record.flag,
        properties=kept.decode(errors="replace"),
    )
    await found.requests.send(header, record.body)
    return Treated("retried", retries=retries)
