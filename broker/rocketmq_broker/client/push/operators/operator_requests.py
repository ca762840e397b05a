"""Handles operators' requests to a push consumer, such as `mqadmin consumerStatus` (RocketMQ's ClientRemotingProcessor)."""

import logging

from rocketmq_broker.client.instance.instance import RequestHandlers
from rocketmq_broker.client.push.operators.direct_consumption import DirectConsumption
from rocketmq_broker.client.push.operators.running_info import ConsumerState
from rocketmq_broker.message import MessageError
from rocketmq_broker.message.record import decode_record, to_message
from rocketmq_broker.protocol.bodies.group import GetConsumerStatusBody
from rocketmq_broker.protocol.bodies.running_info import ConsumeMessageDirectlyResult
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, ReplyTo, encode_response
from rocketmq_broker.protocol.headers.group import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import RequestRefused

logger = logging.getLogger(__name__)


class OperatorRequests:
    """Handles requests that report the consumer's state or make it consume a message at once."""

    def __init__(self, state: ConsumerState, direct: DirectConsumption) -> None:
        """Creates the handlers. `state` provides the consumer's state for the responses; `direct` consumes single messages."""
        self._state = state
        self._direct = direct
        self.handlers: RequestHandlers = {
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._running_info,
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self._offsets,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self._consume_directly,
        }

    def _running_info(self, connection: Connection, request: RemotingCommand) -> bytes:
        header = request.decode_header(GetConsumerRunningInfoRequestHeader)
        self._refuse_other(header.consumer_group)
        info = self._state.running_info(with_threads=header.jstack_enable)
        return encode_response(request, ResponseCode.SUCCESS, body=info.encode())

    def _offsets(self, connection: Connection, request: RemotingCommand) -> bytes:
        header = request.decode_header(GetConsumerStatusRequestHeader)
        self._refuse_other(header.group)
        body = GetConsumerStatusBody(message_queue_table=self._state.offsets(header.topic))
        return encode_response(request, ResponseCode.SUCCESS, body=body.encode())

    def _consume_directly(self, connection: Connection, request: RemotingCommand) -> None:
        """Consumes the message. The response is sent when the listener has returned."""
        header = request.decode_header(ConsumeMessageDirectlyResultRequestHeader)
        self._refuse_other(header.consumer_group)
        try:
            message = to_message(decode_record(request.body), header.broker_name or "")
        except MessageError as error:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"the message cannot be read: {error}") from None
        reply_to = ReplyTo(request.opaque, request.serialize_type)

        def answer(result: ConsumeMessageDirectlyResult) -> None:
            logger.info("message %s was consumed at an operator's request: %s", message.message_id, result.consume_result)
            if connection.is_open:
                connection.send(encode_response(reply_to, ResponseCode.SUCCESS, body=result.encode()))

        self._direct.consume(message, answer)

    def _refuse_other(self, group: str) -> None:
        if group != self._state.group:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"The Consumer Group <{group}> not exist in this consumer")
