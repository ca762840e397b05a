"""Handles RESUME_CHECK_HALF_MESSAGE: resumes discarded messages (AdminBrokerProcessor.resumeCheckHalfMessage)."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from rocketmq_broker.message.errors import CorruptRecord
from rocketmq_broker.message.ids import parse_offset_message_id
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, ReplyTo, encode_response
from rocketmq_broker.protocol.headers.transaction import ResumeCheckHalfMessageRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.parked import ParkedMessages, ParkedPlace, Treatment
from rocketmq_broker.server.ports import Durability
from rocketmq_broker.server.pulling.queue_records import records_from
from rocketmq_broker.server.transactions.transactional_messages import TransactionalMessages
from rocketmq_broker.store import MessageStore, RecordNotFound, StoreUnwritable
from rocketmq_broker.transaction.errors import AlreadyResumed, NotAHalfMessage, NotResumable
from rocketmq_broker.transaction.messages.half_message import HALF_TOPIC, HalfMessage, read_any_message, read_half_message
from rocketmq_broker.transaction.resumption import refuse_if_not_resumable

logger = logging.getLogger(__name__)

MAX_AT_ONCE: Final = 1024
"""The maximum number of half messages that are read in one turn of the event loop."""


@dataclass(slots=True, eq=False, kw_only=True)
class ResumeProcessor:
    """Begins a new transaction for a discarded message, at most once for each message.

    Searches the index for an earlier resumption. If the index cannot find all messages, searches all later half messages instead.
    """

    messages: TransactionalMessages
    store: MessageStore
    parked: ParkedMessages
    group_commit: Durability
    tasks: Tasks
    clock: Callable[[], int]
    _is_searching: bool = field(default=False, init=False)

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """The handler of requests to resume check-backs of a discarded message."""
        return {RequestCode.RESUME_CHECK_HALF_MESSAGE: self.resume_check}

    def resume_check(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """Resumes a discarded message for an operator."""
        message_id = command.decode_header(ResumeCheckHalfMessageRequestHeader).msg_id or ""
        reply_to = ReplyTo(command.opaque, command.serialize_type)
        try:
            place = parse_offset_message_id(message_id)
            discarded = read_half_message(self.store.read_queued(place.commit_log_offset))
            related = self._related_messages(discarded)
            is_searched = self._search_on(connection, discarded, related)
        except (ValueError, RecordNotFound, CorruptRecord, NotAHalfMessage, NotResumable) as error:
            raise _refused(message_id, error) from None
        if is_searched:
            self._resume(connection, reply_to, message_id, discarded)
        elif self._is_searching:
            remark = "another search of all half messages is in progress; try again later"
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, remark)
        else:
            self._is_searching = True
            search = self._search_and_resume(connection, reply_to, message_id, discarded, related)
            self.tasks.start("search for an earlier resumption", search)
        return None

    async def _search_and_resume(
        self, connection: Connection, reply_to: ReplyTo, message_id: str, discarded: HalfMessage, related: Iterator[HalfMessage]
    ) -> None:
        try:
            while not self._search_on(connection, discarded, related):  # noqa: ASYNC110 (yields between the steps of a search)
                await asyncio.sleep(0)
            self._resume(connection, reply_to, message_id, discarded)
        except (CorruptRecord, NotResumable) as error:
            refusal = _refused(message_id, error)
            connection.send(encode_response(reply_to, refusal.code, remark=refusal.remark))
        except RequestRefused as refusal:
            connection.send(encode_response(reply_to, refusal.code, remark=refusal.remark))
        except (StoreUnwritable, OSError) as error:
            connection.send(encode_response(reply_to, ResponseCode.SERVICE_NOT_AVAILABLE, remark=str(error)))
        finally:
            self._is_searching = False

    def _search_on(self, connection: Connection, discarded: HalfMessage, related: Iterator[HalfMessage]) -> bool:
        """Searches the next MAX_AT_ONCE of the `related` messages for an earlier resumption.

        Returns True if there are no more messages. Raises NotResumable, CorruptRecord, StoreUnwritable.
        """
        some = list(islice(related, MAX_AT_ONCE))
        try:
            refuse_if_not_resumable(discarded, some)
        except AlreadyResumed:
            # Apache's broker resumed it, or this broker crashed before it wrote the mark. No operator needs to treat the message.
            place = _place(discarded)
            if not self.parked.is_being_treated(place) and self.parked.latest_mark(*place[:3]) is None:
                self._mark_resumed(place, connection)
            raise
        return len(some) < MAX_AT_ONCE

    def _resume(self, connection: Connection, reply_to: ReplyTo, message_id: str, discarded: HalfMessage) -> None:
        """Begins the new transaction, and responds when it is durable. Raises RequestRefused, StoreUnwritable."""
        try:
            self.messages.resume(discarded, self.clock())
        except (NotAHalfMessage, NotResumable) as error:
            raise _refused(message_id, error) from None
        end_position = self._mark_resumed(_place(discarded), connection)
        logger.warning("%s manually resumed discarded message %s", connection.peer, message_id)
        self.group_commit.after_durable(end_position, connection, reply_to)

    def _mark_resumed(self, place: ParkedPlace, connection: Connection) -> int:
        by_host, now_ms = connection.born_host, self.clock()
        appended = self.parked.append_mark(place, Treatment.RESUMED, now_ms=now_ms, by_host=by_host)
        self.group_commit.appended()
        return appended.end_position

    def _related_messages(self, discarded: HalfMessage) -> Iterator[HalfMessage]:
        """Yields half messages and delivered messages with the same transaction id.

        If the index cannot find all of these messages, yields all later half messages.
        """
        transaction_id = discarded.transaction_id
        if transaction_id is None or not self.store.config.is_index_enabled:
            return self._half_messages_since(discarded)
        topic, _ = discarded.destination()
        found = [self.store.query(place, transaction_id) for place in (HALF_TOPIC, topic)]
        if not all(one.are_all for one in found):  # if very many messages have this id, the index may omit the relevant one
            return self._half_messages_since(discarded)
        return iter([read_any_message(record) for one in found for record in one.records])

    def _half_messages_since(self, discarded: HalfMessage) -> Iterator[HalfMessage]:
        first = self.store.first_after(HALF_TOPIC, 0, discarded.commit_log_offset)
        return map(read_any_message, records_from(self.store, HALF_TOPIC, 0, first))


def _place(discarded: HalfMessage) -> ParkedPlace:
    return ParkedPlace(discarded.topic, 0, discarded.queue_offset, discarded.commit_log_offset)


def _refused(message_id: str, error: Exception) -> RequestRefused:
    return RequestRefused(ResponseCode.SYSTEM_ERROR, f"message {message_id[:64]} cannot be resumed: {error}")
