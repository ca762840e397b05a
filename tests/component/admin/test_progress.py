"""Tests of the commands that show topics and consumer groups."""

from rocketmq_broker.client import ConsumeFromWhere, Message
from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.command_line import CommandLine
from tests.unit.testing.listeners import Consumption


def three_orders(rocketmq: SyncRocketMQ) -> None:
    producer = rocketmq.producer("shops")
    for number in range(3):
        producer.send(Message.of("orders", b"order", keys=[f"order-{number}"]))


def test_topics_are_listed_with_queues_and_messages(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    assert admin.said("topics") == "no topics\n"
    three_orders(rocketmq)

    (row,) = admin.rows("topics")
    assert (row["topic"], row["queues"], row["messages"]) == ("orders", 4, 3)
    assert row["newestMs"] > 0
    assert row["broker"] == admin.rows("topics", "--all")[0]["broker"]
    assert "orders" in admin.said("topics")


def test_the_brokers_own_topics_are_listed_on_demand(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    assert {"TBW102", "SCHEDULE_TOPIC_XXXX"} <= {row["topic"] for row in admin.rows("topics", "--all")}


def test_a_group_that_has_consumed_half_has_a_lag(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    three_orders(rocketmq)
    client = rocketmq.consumer("credits", "orders", Consumption(), consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    rocketmq.advance(seconds=40)
    (row,) = admin.rows("groups")
    assert (row["group"], row["online"], row["topics"], row["lag"]) == ("credits", 1, ["orders"], 0)
    assert row["consumedMs"] > 0

    client.shutdown()
    three_orders(rocketmq)
    (row,) = admin.rows("groups")
    assert (row["online"], row["lag"]) == (0, 3)
    assert "credits" in admin.said("groups")


def test_a_group_is_shown_queue_by_queue(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    three_orders(rocketmq)
    client = rocketmq.consumer("credits", "orders", Consumption(), consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    rocketmq.advance(seconds=40)
    client.shutdown()
    three_orders(rocketmq)

    queues = [row for row in admin.rows("groups", "--group", "credits") if row["topic"] == "orders"]
    assert [row["queueId"] for row in queues] == [0, 1, 2, 3]
    assert sum(row["lag"] for row in queues) == 3
    assert all(row["endOffset"] - row["consumerOffset"] == row["lag"] for row in queues)
    assert "orders" in admin.said("groups", "-g", "credits")


def test_a_group_that_does_not_exist_is_refused(admin: CommandLine) -> None:
    assert "the consumer group nobody has no offsets" in admin.refused("groups", "--group", "nobody")
    assert admin.said("groups") == "no consumer groups\n"
    assert "TOOLS_CONSUMER" in {row["group"] for row in admin.rows("groups", "--all")}
