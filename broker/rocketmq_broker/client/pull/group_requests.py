"""Requests that members of a consumer group send to brokers (RocketMQ's MQClientAPIImpl)."""

from collections.abc import Iterable

from rocketmq_broker.client.instance.broker_calls import BrokerCalls
from rocketmq_broker.client.instance.calls import understood
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.protocol.bodies.group import (
    CheckClientRequestBody,
    GetConsumerListByGroupResponseBody,
    LockBatchRequestBody,
    LockBatchResponseBody,
    UnlockBatchRequestBody,
)
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers.group import GetConsumerListByGroupRequestHeader
from rocketmq_broker.protocol.headers.send import ConsumerSendMsgBackRequestHeader
from rocketmq_broker.protocol.queue_table import MessageQueueData


class GroupRequests:
    """Sends requests about members, queue locks and returned messages.

    All methods raise BrokerUnreachable, RequestTimedOut or BrokerError.
    """

    def __init__(self, calls: BrokerCalls) -> None:
        """`calls` sends the requests."""
        self._calls = calls

    async def consumer_send_message_back(
        self, group: str, message: MessageExt, delay_level: int, max_reconsume_times: int
    ) -> None:
        """Returns the message to the broker. The broker redelivers it after a delay, or moves it to the dead-letter topic."""
        header = ConsumerSendMsgBackRequestHeader(
            offset=message.commit_log_offset,
            group=group,
            delay_level=delay_level,
            origin_msg_id=message.message_id,
            origin_topic=message.topic,
            max_reconsume_times=max_reconsume_times,
            broker_name=message.broker_name,
        )
        await self._calls.ask_master(message.broker_name, RequestCode.CONSUMER_SEND_MSG_BACK, header, timeout_ms=5000)

    async def check_client_config(self, group: str, client_id: str, broker_name: str, subscription: Subscription) -> None:
        """Checks that the broker supports the subscription's filter. Raises BrokerError otherwise."""
        body = CheckClientRequestBody(client_id=client_id, group=group, subscription_data=subscription.to_wire())
        await self._calls.ask_master(broker_name, RequestCode.CHECK_CLIENT_CONFIG, None, body.encode())

    @understood
    async def consumer_ids(self, group: str, broker_name: str) -> list[str]:
        """Returns the client ids of the group's members that are registered at the broker."""
        header = GetConsumerListByGroupRequestHeader(consumer_group=group)
        answer = await self._calls.ask_master(broker_name, RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
        return GetConsumerListByGroupResponseBody.decode(answer.body).consumer_id_list

    @understood
    async def lock_queues(
        self, group: str, client_id: str, broker_name: str, queues: Iterable[MessageQueue]
    ) -> set[MessageQueue]:
        """Locks queues of one broker for this client for 60 s. Returns the queues that could be locked."""
        body = LockBatchRequestBody(
            consumer_group=group, client_id=client_id, mq_set=[MessageQueueData.of(queue) for queue in queues]
        )
        answer = await self._calls.ask_master(broker_name, RequestCode.LOCK_BATCH_MQ, None, body.encode(), timeout_ms=1000)
        return {queue.to_queue() for queue in LockBatchResponseBody.decode(answer.body).lock_ok_mq_set}

    async def unlock_queues(self, group: str, client_id: str, broker_name: str, queues: Iterable[MessageQueue]) -> None:
        """Unlocks queues of one broker."""
        body = UnlockBatchRequestBody(
            consumer_group=group, client_id=client_id, mq_set=[MessageQueueData.of(queue) for queue in queues]
        )
        await self._calls.ask_master(broker_name, RequestCode.UNLOCK_BATCH_MQ, None, body.encode(), timeout_ms=1000)
