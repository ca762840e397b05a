"""Handles the admin requests that list parked messages and retry or dismiss dead letters. RocketMQ has no such requests."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.message import properties as props
from rocketmq_broker.message.dead_letters import group_of, retried_properties, retries_of
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.record import Record, decode_record, moved_message
from rocketmq_broker.protocol.bodies.parked_admin import MarkInfo, MarkList, ParkedCounts
from rocketmq_broker.protocol.codes import AdminRequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.parked_admin import (
    DismissDeadLetterRequestHeader,
    ListMarksRequestHeader,
    RetryDeadLetterRequestHeader,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.server.parked.mark import Mark, ParkedPlace, Treatment
from rocketmq_broker.server.parked.parked_messages import ParkedMessages
from rocketmq_broker.server.ports import Durability
from rocketmq_broker.server.sending.given_reason import acceptable_reason
from rocketmq_broker.server.topics.names import refuse_as_consumer
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.store import Appended, MessageStore, UnreadableRecord
from rocketmq_broker.world import Chance

logger = logging.getLogger(__name__)

MAX_MARKS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterProcessor:
    """Handles the requests of `python -m rocketmq_broker.admin dead-letters`."""

    parked: ParkedMessages
    store: MessageStore
    group_commit: Durability
    topic_table: TopicTable
    subscription_groups: SubscriptionGroupTable
    clock: Callable[[], int]
    random: Chance

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of requests about dead letters and discarded messages. RocketMQ does not have these codes."""
        return {
            AdminRequestCode.COUNT_PARKED_MESSAGES: self.count_parked,
            AdminRequestCode.LIST_MARKS: self.list_marks,
            AdminRequestCode.RETRY_DEAD_LETTER: self.retry,
            AdminRequestCode.DISMISS_DEAD_LETTER: self.dismiss,
        }

    def count_parked(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the number of dead letters and discarded messages that no operator has handled yet, keyed by group."""
        body = ParkedCounts(dead_letters=dict(self.parked.dead_letters()), discarded=dict(self.parked.discarded()))
        return encode_response(command, ResponseCode.SUCCESS, body=body.encode())

    def list_marks(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the latest mark of each message in a range of a queue.

        With `history`, responds with all marks of one message, latest first.
        """
        header = command.decode_header(ListMarksRequestHeader)
        topic, first = header.topic.encode(), header.queue_offset
        if header.history:
            marks = self.parked.marks(topic, header.queue_id, first)
        else:
            offsets = range(first, first + max(0, min(header.count, MAX_MARKS)))
            latest = (self.parked.latest_mark(topic, header.queue_id, offset) for offset in offsets)
            marks = [mark for mark in latest if mark is not None]
        body = MarkList(marks=[_info(mark) for mark in marks])
        return encode_response(command, ResponseCode.SUCCESS, body=body.encode())

    def retry(self, connection: Connection, command: RemotingCommand) -> None:
        """Delivers the message to its consumer group again, with a new count of attempts. Other groups do not receive it."""
        header = command.decode_header(RetryDeadLetterRequestHeader)
        reason = acceptable_reason(header.reason, what_for="a retry") if header.reason else ""
        letter, group, before = self._dead_letter(header.offset)
        if before is not None and not header.again:
            raise _refused(f"the message was {_treated(before)}; use --again to retry it")
        retries = max(retries_of(letter), before.retries if before is not None else 0) + 1
        self._append_retried(letter, group, retries)
        self._mark(connection, command, letter, Treatment.RETRIED, reason, retries)

    def dismiss(self, connection: Connection, command: RemotingCommand) -> None:
        """Marks the message as dismissed, and stores the operator's reason."""
        header = command.decode_header(DismissDeadLetterRequestHeader)
        reason = acceptable_reason(header.reason, what_for="a dismissal")
        letter, _, before = self._dead_letter(header.offset)
        if before is not None:
            raise _refused(f"the message was {_treated(before)}")
        self._mark(connection, command, letter, Treatment.DISMISSED, reason, retries_of(letter))

    def _dead_letter(self, commit_log_offset: int) -> tuple[Record, str, Mark | None]:
        """Returns the dead letter at `commit_log_offset`, its group, and its latest mark. Raises RequestRefused."""
        try:
            record = decode_record(self.store.read_queued(commit_log_offset))
        except UnreadableRecord as error:
            raise _refused(f"no message at commit log offset {commit_log_offset}: {error}") from None
        group = group_of(record)
        if group is None:
            raise _refused(f"not a dead letter: the message at {commit_log_offset} is in topic {record.topic.decode()}")
        place = _place(record)
        if self.parked.is_being_treated(place):
            raise _refused("another request is processing this message; try again")
        return record, group, self.parked.latest_mark(*place[:3])

    def _append_retried(self, letter: Record, group: str, retries: int) -> None:
        if not letter.get_property(props.RETRY_TOPIC):
            raise _refused(
                "the message has no RETRY_TOPIC property and cannot be retried: it was sent directly to the dead letter topic"
            )
        refuse_as_consumer(group)
        settings = self.subscription_groups.for_consuming(group)
        if settings.retry_queue_nums <= 0:
            raise _refused(f"group {group} has no retry queue: set retryQueueNums to at least 1")
        topic = self.topic_table.retry_topic(group, settings.retry_queue_nums).topic_name
        queue_id = self.random.randrange(settings.retry_queue_nums)
        message = moved_message(letter, topic.encode(), queue_id, retried_properties(letter, retries), 0)
        self.store.append(message, self.clock(), was_accepted=True)

    def _mark(
        self, connection: Connection, command: RemotingCommand, letter: Record, treatment: Treatment, reason: str, retries: int
    ) -> None:
        now_ms = self.clock()
        appended: Appended = self.parked.append_mark(
            _place(letter), treatment, now_ms=now_ms, by_host=connection.born_host, reason=reason, retries=retries
        )
        logger.warning(
            "%s manually %s dead letter %s of group %s: %s",
            connection.peer, treatment.value, offset_message_id(letter.store_host, letter.commit_log_offset),
            group_of(letter), reason or "no reason given",
        )  # fmt: skip
        info = MarkInfo(letter.queue_offset, treatment.value, now_ms, connection.peer, reason, retries)
        self.group_commit.appended()
        self.group_commit.after_durable(appended.end_position, connection, command, body=MarkList(marks=[info]).encode())


def _place(record: Record) -> ParkedPlace:
    return ParkedPlace(record.topic, record.queue_id, record.queue_offset, record.commit_log_offset)


def _info(mark: Mark) -> MarkInfo:
    return MarkInfo(mark.place.queue_offset, mark.treatment.value, mark.at_ms, mark.by, mark.reason, mark.retries)


def _treated(mark: Mark) -> str:
    return f"already {mark.treatment.value}" + (f": {mark.reason}" if mark.reason else "")


def _refused(remark: str) -> RequestRefused:
    return RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
