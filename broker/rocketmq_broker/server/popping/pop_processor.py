"""Handles pops, acknowledgements and changes of the invisible time.

Follows RocketMQ's PopMessageProcessor, NotificationProcessor, AckMessageProcessor and ChangeInvisibleTimeProcessor.
"""

from collections.abc import Mapping
from typing import Final

from rocketmq_broker.protocol.bodies.pop import BatchAckMessageRequestBody
from rocketmq_broker.protocol.codes import PopResponseCode, RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, ReplyTo, encode_response
from rocketmq_broker.protocol.headers.pop import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    NotificationRequestHeader,
    NotificationResponseHeader,
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.server.clients.message_filters import MessageFilters
from rocketmq_broker.server.popping.errors import HandleExpired, IllegalHandle, TooManyPops
from rocketmq_broker.server.popping.popped import Popped
from rocketmq_broker.server.popping.popping import Popping
from rocketmq_broker.server.popping.receipt_handle import ORDERED, ReceiptHandle, retry_mark
from rocketmq_broker.server.popping.waiting_pops import PopRequest
from rocketmq_broker.server.ports import Durability

MAX_ACKS: Final = 1000
"""The maximum number of messages that one BATCH_ACK_MESSAGE acknowledges. Each of them appends a record."""
_AT_THE_END: Final = 1
"""RocketMQ's ConsumeInitMode.MAX: a new group begins at the end of its queues."""


class PopProcessor:
    """Handles pops, acknowledgements and changes of the invisible time. Each response is sent when its effect is durable."""

    def __init__(self, popping: Popping, message_filters: MessageFilters, group_commit: Durability) -> None:
        self._popping = popping
        self._filters = message_filters
        self._group_commit = group_commit

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of pops, acknowledgements and changes of the invisible time."""
        return {
            RequestCode.POP_MESSAGE: self.pop,
            RequestCode.NOTIFICATION: self.notify,
            RequestCode.ACK_MESSAGE: self.ack,
            RequestCode.BATCH_ACK_MESSAGE: self.batch_ack,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME: self.change_invisible_time,
        }

    def pop(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """Responds with messages immediately, or when messages arrive. Responds with POLLING_TIMEOUT after the poll time."""
        header = command.decode_header(PopMessageRequestHeader)
        reply_to = ReplyTo(command.opaque, command.serialize_type)
        request = PopRequest(
            group=header.consumer_group,
            topic=header.topic,
            queue_id=max(header.queue_id, -1),
            max_messages=header.max_msg_nums,
            invisible_ms=header.invisible_time,
            message_filter=self._filters.of_expression(header.exp_type, header.exp),
            is_ordered=bool(header.order),
            attempt_id=header.attempt_id,
            begins_at_end=header.init_mode == _AT_THE_END,
        )

        def deliver(popped: Popped | None) -> None:
            if popped is None:
                connection.send(_nothing(reply_to, header, PopResponseCode.POLLING_TIMEOUT, "NO_MESSAGE_IN_QUEUE"))
            else:
                body = b"".join(record for queue in popped.queues for record in queue.records)
                self._group_commit.after_durable(popped.end_position, connection, reply_to, _found(header, popped), body)

        try:
            self._popping.begin(request, header.poll_time, deliver, owner=connection)
        except TooManyPops as error:
            return _nothing(reply_to, header, PopResponseCode.POLLING_FULL, str(error))
        return None

    def notify(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """Responds that messages are available, immediately or when messages arrive.

        After the poll time, responds that no messages are available.
        """
        header = command.decode_header(NotificationRequestHeader)
        reply_to = ReplyTo(command.opaque, command.serialize_type)
        request = PopRequest(
            group=header.consumer_group,
            topic=header.topic,
            queue_id=max(header.queue_id, -1),
            max_messages=1,
            invisible_ms=1,
            message_filter=self._filters.of_expression(None, None),
            is_ordered=bool(header.order),
            attempt_id=header.attempt_id,
            is_notification=True,
        )

        def respond(popped: Popped | None) -> None:
            answer = NotificationResponseHeader(has_msg=popped is not None)
            connection.send(encode_response(reply_to, ResponseCode.SUCCESS, answer))

        try:
            self._popping.begin(request, header.poll_time, respond, owner=connection)
        except TooManyPops:
            return encode_response(reply_to, ResponseCode.SUCCESS, NotificationResponseHeader(has_msg=False, polling_full=True))
        return None

    def ack(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """Acknowledges a message. Responds with NO_MESSAGE if its invisible time has ended."""
        header = command.decode_header(AckMessageRequestHeader)
        try:
            handle = ReceiptHandle.parse(header.extra_info, header.offset)
            end_position = self._popping.deliveries.settle(header.consumer_group, header.topic, handle)
        except (HandleExpired, IllegalHandle) as error:
            raise _refused(error) from None
        return self._answer_later(connection, command, end_position)

    def batch_ack(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """Acknowledges messages of several pops. Skips messages whose invisible time has ended, as RocketMQ does."""
        body = BatchAckMessageRequestBody.decode(command.body)
        acks = [(ack, offset) for ack in body.acks for offset in ack.offsets()]
        if len(acks) > MAX_ACKS:
            remark = f"too many messages in one acknowledgement: {len(acks)}, limit {MAX_ACKS}"
            raise RequestRefused(PopResponseCode.INVALID_PARAMETER, remark)
        end_position = None
        for ack, offset in acks:
            is_ordered, is_retry = ack.revive_queue_id == ORDERED, ack.retry == retry_mark(is_retry=True)
            handle = ReceiptHandle(
                ack.start_offset, ack.pop_time, ack.invisible_time, is_ordered, is_retry, body.broker_name, ack.queue_id, offset
            )
            try:
                end_position = self._popping.deliveries.settle(ack.consumer_group, ack.topic, handle) or end_position
            except HandleExpired:
                continue
            except IllegalHandle as error:
                raise _refused(error) from None
        return self._answer_later(connection, command, end_position)

    def change_invisible_time(self, connection: Connection, command: RemotingCommand) -> None:
        """Changes the end of a message's invisible time. Responds with NO_MESSAGE if that time has already ended."""
        header = command.decode_header(ChangeInvisibleTimeRequestHeader)
        try:
            handle = ReceiptHandle.parse(header.extra_info, header.offset)
            renewed, end_position = self._popping.deliveries.renew(
                header.consumer_group, header.topic, handle, header.invisible_time
            )
        except (HandleExpired, IllegalHandle) as error:
            raise _refused(error) from None
        answer = ChangeInvisibleTimeResponseHeader(
            pop_time=renewed.pop_time_ms, invisible_time=renewed.invisible_ms, revive_qid=ORDERED if renewed.is_ordered else 0
        )
        self._group_commit.after_durable(end_position, connection, command, answer)

    def _answer_later(self, connection: Connection, command: RemotingCommand, end_position: int | None) -> bytes | None:
        if end_position is None:
            return encode_response(command, ResponseCode.SUCCESS)
        if not command.is_oneway:
            self._group_commit.after_durable(end_position, connection, command)
        return None


def _found(header: PopMessageRequestHeader, popped: Popped) -> PopMessageResponseHeader:
    marks = [(f"{retry_mark(is_retry=queue.is_retry)} {queue.queue_id}", queue) for queue in popped.queues]
    return PopMessageResponseHeader(
        pop_time=popped.pop_time_ms,
        invisible_time=popped.invisible_ms,
        revive_qid=ORDERED if header.order else 0,
        rest_num=popped.rest,
        start_offset_info=";".join(f"{mark} {queue.start_offset}" for mark, queue in marks),
        msg_offset_info=";".join(f"{mark} {','.join(map(str, queue.offsets))}" for mark, queue in marks),
        order_count_info=";".join(f"{mark} {queue.attempt - 1}" for mark, queue in marks) if header.order else None,
    )


def _nothing(reply_to: ReplyTo, header: PopMessageRequestHeader, code: PopResponseCode, remark: str) -> bytes:
    answer = PopMessageResponseHeader(
        pop_time=header.born_time, invisible_time=header.invisible_time, revive_qid=ORDERED if header.order else 0, rest_num=0
    )
    return encode_response(reply_to, code, answer, remark=remark)


def _refused(error: Exception) -> RequestRefused:
    code = ResponseCode.NO_MESSAGE if isinstance(error, HandleExpired) else ResponseCode.MESSAGE_ILLEGAL
    return RequestRefused(code, str(error))
