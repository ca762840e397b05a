"""Producers' requests to brokers (RocketMQ's MQClientAPIImpl)."""

from __future__ import annotations

from rocketmq_broker.client.errors import BrokerError
from rocketmq_broker.client.instance.broker_calls import TIMEOUT_MS, BrokerCalls
from rocketmq_broker.client.instance.calls import ask_for_success
from rocketmq_broker.client.instance.unreadable import understood
from rocketmq_broker.client.producer.send_result import SendResult, SendStatus
from rocketmq_broker.client.producer.wire_message import WireMessage
from rocketmq_broker.message import MessageQueue, permissions, topics
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers import (
    CreateTopicRequestHeader,
    EndTransactionRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
)

_STORED: dict[int, SendStatus] = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


class SendRequests:
    """Sends and decisions. All raise BrokerUnreachable or RequestTimedOut, and BrokerError where an answer is expected."""

    def __init__(self, calls: BrokerCalls) -> None:
        """`calls` reaches the brokers."""
        self._calls = calls

    @understood
    async def send_message(
        self, group: str, message: WireMessage, queue: MessageQueue, *, born_ms: int, timeout_ms: int
    ) -> SendResult:
        """Stores the message in the queue."""
        address = await self._calls.routes.address_of(queue.broker_name)
        header = self._header(group, message, queue, born_ms)
        answer = await self._calls.ask_at(address, _send_code(message), header, message.body, timeout_ms=timeout_ms)
        status = _STORED.get(answer.code)
        if status is None:
            raise BrokerError(answer.code, answer.remark, address)
        stored = answer.decode_header(SendMessageResponseHeader)
        return SendResult(
            send_status=status,
            message_id=message.unique_id,
            offset_message_id=stored.msg_id,
            queue=MessageQueue(message.topic, queue.broker_name, stored.queue_id),
            queue_offset=stored.queue_offset,
            transaction_id=stored.transaction_id,
        )

    async def send_message_oneway(self, group: str, message: WireMessage, queue: MessageQueue, *, born_ms: int) -> None:
        """Sends the message to the queue without an answer."""
        header = self._header(group, message, queue, born_ms)
        await self._calls.tell_master(queue.broker_name, _send_code(message), header, message.body)

    async def end_transaction(self, broker_name: str, header: EndTransactionRequestHeader) -> None:
        """Sends the decision to the broker, one-way."""
        await self._calls.tell_master(broker_name, RequestCode.END_TRANSACTION, header)

    async def create_topic(self, address: str, topic: str, queue_count: int) -> None:
        """Creates the topic on the broker at that address, or changes its number of queues."""
        header = CreateTopicRequestHeader(
            topic=topic,
            default_topic=topics.AUTO_CREATE_TOPIC,
            read_queue_nums=queue_count,
            write_queue_nums=queue_count,
            perm=permissions.READ_AND_WRITE,
            topic_filter_type="SINGLE_TAG",
            topic_sys_flag=0,
        )
        code = RequestCode.UPDATE_AND_CREATE_TOPIC
        await ask_for_success(self._calls.remoting, address, code, header, timeout_ms=TIMEOUT_MS)

    def _header(self, group: str, message: WireMessage, queue: MessageQueue, born_ms: int) -> SendMessageRequestHeaderV2:
        return SendMessageRequestHeaderV2(
            producer_group=group,
            topic=message.topic,
            default_topic=topics.AUTO_CREATE_TOPIC,
            default_topic_queue_nums=self._calls.routes.queues_of_new_topics,
            queue_id=queue.queue_id,
            sys_flag=message.sys_flag,
            born_timestamp=born_ms,
            flag=message.flag,
            properties=message.properties,
            reconsume_times=message.reconsume_times,
            unit_mode=False,
            max_reconsume_times=message.max_reconsume_times,
            batch=message.is_batch,
            broker_name=queue.broker_name,
        )


def _send_code(message: WireMessage) -> RequestCode:
    if message.is_reply:
        return RequestCode.SEND_REPLY_MESSAGE_V2
    return RequestCode.SEND_BATCH_MESSAGE if message.is_batch else RequestCode.SEND_MESSAGE_V2
