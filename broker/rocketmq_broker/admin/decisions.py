"""Decides or resumes a transaction at the broker that holds it."""

import msgspec

from rocketmq_broker.admin.broker_requests.discarded import DiscardedMessage, discarded_with_id, read_discarded, with_resumption
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests, is_stored_at
from rocketmq_broker.admin.errors import CannotAsk, Refused
from rocketmq_broker.admin.output.numbers import is_number
from rocketmq_broker.admin.session import Session
from rocketmq_broker.message import topics
from rocketmq_broker.message.ids import MessageId, parse_offset_message_id
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo
from rocketmq_broker.protocol.headers.transaction_admin import DecideTransactionRequestHeader, ShowTransactionRequestHeader

PENDING = "pending"
_MAX_OFFSET = 2**63 - 1


def half_offset_of(word: str) -> int | None:
    """Returns the half offset if the word is a number up to 2^63 - 1; None for a transaction id or key."""
    return int(word) if is_number(word) and int(word) <= _MAX_OFFSET else None


async def decide(session: Session, word: str, *, commit: bool, reason: str) -> tuple[BrokerRequests, TransactionInfo]:
    """Commits or rolls back the pending transaction with this id or half offset. Raises Refused or CannotAsk."""
    half_offset = half_offset_of(word)
    if half_offset is not None:
        header = DecideTransactionRequestHeader(half_offset=half_offset, commit=commit, reason=reason)
    else:
        header = DecideTransactionRequestHeader(transaction_id=word, commit=commit, reason=reason)
    broker = await _broker_with(session, word, is_offset=half_offset is not None)
    return broker, await broker.decide(header)


async def resume(session: Session, word: str) -> tuple[BrokerRequests, DiscardedMessage]:
    """Resumes the check-backs of the discarded message with this message id or transaction id. Raises Refused or CannotAsk."""
    found = await session.ask_each(lambda broker: discarded_with_id(broker, word))
    matching = [(broker, message) for broker, messages in found for message in messages]
    if matching:
        broker, message = max(matching, key=lambda match: match[1].discarded_ms)
    else:
        broker, message = await _discarded_at(session, word)
    if message.is_resumed:  # this broker would refuse it; Apache's would deliver the message again
        raise Refused(f"discarded message already resumed: {message.message_id}")
    await broker.resume(message.message_id)
    return broker, msgspec.structs.replace(message, is_resumed=True)


async def _discarded_at(session: Session, message_id: str) -> tuple[BrokerRequests, DiscardedMessage]:
    """Returns the discarded message with this offset message id. Raises Refused if there is none."""
    try:
        parsed = parse_offset_message_id(message_id)
    except ValueError:
        raise Refused(f"discarded message not found: {message_id}") from None
    broker = _broker_storing(session, parsed)
    record = await broker.view(parsed.commit_log_offset)
    if record.topic.decode(errors="replace") != topics.CHECK_MAX_TIME_TOPIC:
        raise Refused(f"the message {message_id} is not discarded: it is not in {topics.CHECK_MAX_TIME_TOPIC}")
    return broker, await with_resumption(broker, read_discarded(record))


def _broker_storing(session: Session, message_id: MessageId) -> BrokerRequests:
    if len(session.brokers) == 1:
        return session.brokers[0]
    for broker in session.brokers:
        if is_stored_at(message_id, broker.address):
            return broker
    raise Refused(
        f"the message id names broker {message_id.host}:{message_id.port}, but no running broker has this address: check the id"
    )


async def _broker_with(session: Session, word: str, *, is_offset: bool) -> BrokerRequests:
    if len(session.brokers) == 1:
        return session.brokers[0]
    if is_offset:
        raise CannotAsk("half offsets are ambiguous with several brokers: choose one with --broker-addr")
    answers = await session.ask_each(lambda broker: broker.show(ShowTransactionRequestHeader(transaction_id=word)))
    if session.failures:
        raise CannotAsk("some brokers could not be searched for the transaction: choose one with --broker-addr")
    matching = [broker for broker, found in answers if any(info.state == PENDING for info in found.transactions)]
    matching = matching or [broker for broker, found in answers if found.transactions]
    if not matching:
        raise Refused(f"transaction not found: {word}")
    if len(matching) > 1:
        addresses = ", ".join(broker.address for broker in matching)
        raise Refused(f"several brokers have a transaction with id {word}: choose one with --broker-addr ({addresses})")
    return matching[0]
