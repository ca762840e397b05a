"""RocketMQ for FastStream: subscribers, publishers, and transactional messages with their check-backs.

    from faststream import FastStream
    from faststream_rocketmq import LocalTransactionState, RocketMQBroker, RocketMQMessage

    broker = RocketMQBroker(group="stream-order-service")

    @broker.subscriber("stream-orders", group="stream-credit-service", tags="paid")
    async def credit(order: Order, message: RocketMQMessage) -> None: ...

Tests use `faststream_rocketmq.testing.TestRocketMQBroker`.
"""

from typing import Annotated

from faststream import Context

from faststream_rocketmq.broker import RocketMQBroker
from faststream_rocketmq.messages import ReceivedMessage, RocketMQResponse
from rocketmq_broker.client import LocalTransactionState

RocketMQMessage = Annotated[ReceivedMessage, Context("message")]
"""The annotation of a handler's parameter that receives the message itself."""

__all__ = ["LocalTransactionState", "ReceivedMessage", "RocketMQBroker", "RocketMQMessage", "RocketMQResponse"]
