"""Changing a transaction's fate: the one broker that has it is found first."""

from __future__ import annotations

from broker.admin.discarded import DiscardedMessage, discarded_with_id
from broker.admin.errors import CannotAsk, Refused
from broker.admin.requests import BrokerRequests, is_stored_at
from broker.admin.session import Session
from broker.message.ids import parse_offset_message_id
from broker.protocol.bodies import TransactionInfo
from broker.protocol.headers import DecideTransactionRequestHeader, ShowTransactionRequestHeader

PENDING = "pending"
_LONGEST_OFFSET = 19


def half_offset_of(word: str) -> int | None:
    """The half offset that a word of up to 19 digits is; others are transaction ids or keys."""
    return int(word) if word.isascii() and word.isdigit() and len(word) <= _LONGEST_OFFSET else None


async def decide(session: Session, word: str, *, commit: bool, reason: str) -> tuple[BrokerRequests, TransactionInfo]:
    """Commits or rolls back the pending transaction with that id, or at that half offset. Raises Refused, CannotAsk."""
    half_offset = half_offset_of(word)
    if half_offset is not None:
        header = DecideTransactionRequestHeader(half_offset=half_offset, commit=commit, reason=reason)
    else:
        header = DecideTransactionRequestHeader(transaction_id=word, commit=commit, reason=reason)
    broker = await _broker_with(session, word, is_offset=half_offset is not None)
    decided = await broker.decide(header)
    return broker, decided.transactions[0]


async def resume(session: Session, word: str) -> tuple[BrokerRequests, str]:
    """Has a discarded message checked again, by its message id or transaction id. Raises Refused, CannotAsk."""
    found = await session.ask_each(lambda broker: discarded_with_id(broker, word))
    matching = [(broker, message) for broker, messages in found for message in messages]
    if matching:
        broker, message = max(matching, key=lambda match: match[1].discarded_ms)
        _refuse_resumed(message)
        message_id = message.message_id
    else:
        broker, message_id = _broker_storing(session, word), word
    await broker.resume(message_id)
    return broker, message_id


def _refuse_resumed(message: DiscardedMessage) -> None:
    """Ours refuses by itself; Apache's would deliver the message once more."""
    if message.is_resumed:
        raise Refused(f"the discarded message {message.message_id} has been resumed already")


def _broker_storing(session: Session, message_id: str) -> BrokerRequests:
    try:
        parsed = parse_offset_message_id(message_id)
    except ValueError:
        raise Refused(f"there is no discarded message with id {message_id}") from None
    if len(session.brokers) == 1:
        return session.brokers[0]
    for broker in session.brokers:
        if is_stored_at(parsed, broker.address):
            return broker
    raise Refused(f"no discarded message has id {message_id}, and none of the brokers is {parsed.host}:{parsed.port}")


async def _broker_with(session: Session, word: str, *, is_offset: bool) -> BrokerRequests:
    if len(session.brokers) == 1:
        return session.brokers[0]
    if is_offset:
        raise CannotAsk("there are several brokers, and each has half messages at its own offsets: say which with --broker-addr")
    answers = await session.ask_each(lambda broker: broker.show(ShowTransactionRequestHeader(transaction_id=word)))
    if session.failures:
        raise CannotAsk("not all brokers could be asked which one has the transaction: say which with --broker-addr")
    having = [broker for broker, found in answers if any(info.state == PENDING for info in found.transactions)]
    having = having or [broker for broker, found in answers if found.transactions]
    if not having:
        raise Refused(f"there is no transaction with id {word}")
    if len(having) > 1:
        addresses = ", ".join(broker.address for broker in having)
        raise Refused(f"several brokers have a transaction with id {word}: say which with --broker-addr ({addresses})")
    return having[0]
