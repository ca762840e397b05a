"""A consumer checks before it starts that the brokers support the filters of its subscriptions."""

import pytest

from rocketmq_broker.client import BrokerError, BrokerUnreachable, IllegalConfiguration, MessageSelector
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.client.pull.subscription_check import SubscriptionCheck
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol.codes import ResponseCode

BY_SQL = Subscription.parse("orders", MessageSelector.by_sql("a > 3"), 1)
BY_TAG = Subscription.parse("orders", "a || b", 1)


class Brokers:
    """A replacement for routes and requests. Two brokers have the topic orders and return the given responses."""

    def __init__(self, **answers: Exception) -> None:
        self._answers = answers
        self.asked: list[tuple[str, str]] = []
        self.check = SubscriptionCheck("group", "me", self, self)  # type: ignore[arg-type]

    def queues_to_subscribe(self, topic: str) -> list[MessageQueue] | None:
        return [MessageQueue(topic, name, number) for name in ("a", "b") for number in (0, 1)] if topic == "orders" else None

    async def check_client_config(self, group: str, client_id: str, broker_name: str, subscription: Subscription) -> None:
        self.asked.append((broker_name, subscription.expression))
        if error := self._answers.get(broker_name):
            raise error


async def test_every_broker_of_the_topic_is_asked_once() -> None:
    brokers = Brokers()
    await brokers.check.run([BY_SQL, Subscription.parse("not there yet", MessageSelector.by_sql("a > 3"), 1)])
    assert brokers.asked == [("a", "a > 3"), ("b", "a > 3")]


async def test_nobody_is_asked_about_tags() -> None:
    brokers = Brokers()
    await brokers.check.run([BY_TAG])
    assert brokers.asked == []


@pytest.mark.parametrize(
    "code", [ResponseCode.SYSTEM_ERROR, ResponseCode.SUBSCRIPTION_PARSE_FAILED, ResponseCode.REQUEST_CODE_NOT_SUPPORTED]
)
async def test_a_broker_that_refuses_ends_the_start_in_its_words(code: ResponseCode) -> None:
    brokers = Brokers(b=BrokerError(code, "does not support", "10.0.0.1:10911"))
    with pytest.raises(IllegalConfiguration, match=r"orders by SQL92 'a > 3': broker 10.0.0.1:10911 .* does not support"):
        await brokers.check.run([BY_SQL])


@pytest.mark.parametrize("error", [BrokerUnreachable("away"), BrokerError(ResponseCode.SYSTEM_BUSY, "busy")])
async def test_a_broker_that_is_away_or_busy_is_no_reason_not_to_start(error: Exception) -> None:
    brokers = Brokers(a=error)
    await brokers.check.run([BY_SQL])
    assert [name for name, _ in brokers.asked] == ["a", "b"]
