"""What newcomers set wrongly: a producer or consumer says so when it is made, with the name that was meant."""

import logging
from pathlib import Path
from typing import Any

import pytest

from rocketmq_broker.client import (
    ConsumeFromWhere,
    IllegalConfiguration,
    MessageModel,
    MessageRefused,
    Producer,
    PullConsumer,
    PushConsumer,
    TransactionProducer,
)
from rocketmq_broker.client.checks.argument_check import check_batch, check_number, check_queue, check_queues, check_target
from rocketmq_broker.client.producer.wire_message import check_message, to_wire
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.client.transaction.transaction_decision import decision_and_failure
from rocketmq_broker.message import Message, MessageQueue


class Listener:
    def execute_local_transaction(self, message: Any, arg: Any) -> Any: ...

    def check_local_transaction(self, message: Any) -> Any: ...


MAKERS = {
    "Producer": lambda *group, **settings: Producer(*group, **settings),
    "TransactionProducer": lambda *group, **settings: TransactionProducer(*group, Listener(), **settings),
    "PushConsumer": lambda *group, **settings: PushConsumer(*group, **settings),
    "PullConsumer": lambda *group, **settings: PullConsumer(*group, **settings),
}


@pytest.mark.parametrize("client", MAKERS)
@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        ("my group", r"group 'my group'.*illegal characters"),
        ("", "group ''.*blank"),
        (None, "group is None; a str is expected"),
        (7, "group is an int; a str is expected"),
        ("g" * 256, "longer than group max length 255"),
    ],
)
def test_a_group_needs_a_legal_name(client: str, group: Any, sentence: str) -> None:
    with pytest.raises(IllegalConfiguration, match=sentence):
        MAKERS[client](group)


@pytest.mark.parametrize("client", MAKERS)
@pytest.mark.parametrize(("given", "meant"), [("namesrv", "namesrv_addr"), ("namesrvAddr", "namesrv_addr"), ("grp", "group")])
def test_an_unknown_setting_is_named_with_the_nearest_and_all_others(client: str, given: str, meant: str) -> None:
    with pytest.raises(IllegalConfiguration) as refused:
        MAKERS[client]("g", **{given: "x"})
    assert str(refused.value).startswith(f"{client} has no parameter '{given}'. Did you mean '{meant}'? It has: group, ")


def test_the_settings_of_a_push_consumer_are_listed_too() -> None:
    with pytest.raises(IllegalConfiguration, match=r"Did you mean 'consume_thread_max'\? It has: .*pull_batch_size"):
        PushConsumer("g", consumeThreadMax=3)


@pytest.mark.parametrize(
    ("client", "setting", "value", "sentence"),
    [
        ("Producer", "send_timeout_ms", "3000", r"send_timeout_ms is '3000' \(a str\); a whole number is expected"),
        ("Producer", "send_timeout_ms", 0, "send_timeout_ms is 0; it has to be at least 1"),
        ("Producer", "retry_times_when_send_failed", -1, "has to be at least 0"),
        ("Producer", "compress_message_body_over", None, "a whole number is expected"),
        ("Producer", "default_topic_queue_nums", 0, "has to be at least 1"),
        ("TransactionProducer", "transaction_threads", 0, "has to be at least 1"),
        ("TransactionProducer", "check_threads", True, "a whole number is expected"),
        ("TransactionProducer", "check_request_hold_max", 1.5, "a whole number is expected"),
        ("PushConsumer", "pull_batch_size", "32", r"pull_batch_size is '32' \(a str\)"),
        ("PushConsumer", "consume_thread_max", 0, "has to be 1 to 1000"),
        ("PushConsumer", "message_model", "BROADCASTING", r"Did you mean MessageModel.BROADCASTING\?"),
        ("PushConsumer", "consume_timestamp_ms", "20261122", "a whole number is expected"),
        ("PushConsumer", "max_reconsume_times", "3", "a whole number is expected"),
        ("PushConsumer", "instance_name", 1, "instance_name is an int; a str is expected"),
        ("PushConsumer", "local_offset_directory", "/tmp", "local_offset_directory is a str; a pathlib.Path is expected"),
        ("PullConsumer", "pull_batch_size", 2000, "has to be 1 to 1024"),
        ("PullConsumer", "pull_threshold_for_queue", 0, "has to be 1 to 65535"),
        ("PullConsumer", "consume_timestamp_ms", 1.5, "a whole number is expected"),
    ],
)
def test_a_setting_of_another_type_or_range_is_refused(client: str, setting: str, value: Any, sentence: str) -> None:
    with pytest.raises(IllegalConfiguration, match=sentence):
        MAKERS[client]("g", **{setting: value})


@pytest.mark.parametrize("client", ["PushConsumer", "PullConsumer"])
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("FIRST", "CONSUME_FROM_FIRST_OFFSET"),
        ("last", "CONSUME_FROM_LAST_OFFSET"),
        ("CONSUME_FROM_FIRST", "CONSUME_FROM_FIRST_OFFSET"),
        ("timestamp", "CONSUME_FROM_TIMESTAMP"),
    ],
)
def test_where_to_begin_is_a_member_of_the_enumeration(client: str, given: str, meant: str) -> None:
    with pytest.raises(
        IllegalConfiguration, match=rf"consume_from_where is '{given}' .* Did you mean ConsumeFromWhere\.{meant}\?"
    ):
        MAKERS[client]("g", consume_from_where=given)


def test_right_settings_are_taken(tmp_path: Path) -> None:
    PushConsumer(
        "g",
        message_model=MessageModel.BROADCASTING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
        consume_timestamp_ms=1,
        max_reconsume_times=-1,
        local_offset_directory=tmp_path,
    )


@pytest.mark.parametrize(
    ("topic", "sentence"),
    [("my topic", "topic 'my topic'.*illegal characters"), (["orders"], "the topic is a list; a str is expected")],
)
def test_a_subscription_needs_a_legal_topic(topic: Any, sentence: str) -> None:
    with pytest.raises(IllegalConfiguration, match=sentence):
        PushConsumer("g").subscribe(topic)


def test_tags_of_a_subscription_are_one_expression(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(IllegalConfiguration, match=r"the expression is a list; a str is expected, as 'a \|\| b'"):
        PushConsumer("g").subscribe("orders", ["created", "paid"])  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING):
        for right in ("*", "created", "created || paid"):
            Subscription.parse("orders", right, 1)
        assert caplog.messages == []
        for wrong in ("created,paid", "created|paid", "created or paid"):
            assert Subscription.parse("orders", wrong, 1).tags == {wrong}
    assert caplog.messages == [
        f"subscription of orders: {wrong!r} is one tag; several tags are joined by '||', as in 'a || b'"
        for wrong in ("created,paid", "created|paid", "created or paid")
    ]


def test_only_messages_can_be_sent() -> None:
    for given in ("text", None, b"bytes"):
        with pytest.raises(TypeError, match=r"a Message is expected, as Message.of\(topic, body\) makes it; this is "):
            check_message(given)  # type: ignore[arg-type]


def test_a_message_to_an_illegal_topic_names_the_topic() -> None:
    with pytest.raises(MessageRefused, match=r"topic 'my topic': .*illegal characters"):
        check_message(Message.of("my topic", b"x"))


def test_a_property_that_is_no_str_is_refused_before_it_is_sent() -> None:
    with pytest.raises(MessageRefused, match="property 'count' is an int; a str is expected"):
        to_wire(Message(topic="orders", body=b"x", properties={"count": 1}))  # type: ignore[dict-item]


def test_arguments_of_calls_are_told_from_what_they_should_be() -> None:
    queue = MessageQueue("orders", "broker-a", 0)
    for wrong in (0, "orders", None):
        with pytest.raises(TypeError, match=r"queue is .*; a MessageQueue is expected"):
            check_queue(wrong)
    for wrong in ("orders", queue, None, 3):
        with pytest.raises(TypeError, match=r"queues is .*; a list of MessageQueue is expected"):
            check_queues(wrong)
    for wrong in ("messages", Message.of("orders", b"x"), None):
        with pytest.raises(TypeError, match="a batch is a list of messages; this is "):
            check_batch(wrong)
    for wrong in ("3", 1.5, True):
        with pytest.raises(TypeError, match="a whole number is expected"):
            check_number("offset", wrong, least=0)
    with pytest.raises(ValueError, match="offset is -1; at least 0 is expected"):
        check_number("offset", -1, least=0)
    with pytest.raises(ValueError, match="timeout_ms is 0; at least 1 is expected"):
        check_target(queue, 0)
    check_target(None, None)
    check_queues([queue])


@pytest.mark.parametrize("answer", [None, True, "COMMIT_MESSAGE", 0])
def test_what_a_transaction_listener_may_not_answer_is_said_with_what_it_may(
    answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    decision_and_failure(answer, None, "id")
    (line,) = caplog.messages
    assert line.startswith(f"the listener answered {answer!r} for transaction id: that counts as UNKNOWN")
    assert line.endswith("A listener returns LocalTransactionState.COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOWN")


def test_a_decorator_subscribes_and_registers_its_function_for_one_topic_or_several() -> None:
    consumer = PushConsumer("g")

    @consumer.consumes("refunds")
    @consumer.consumes("orders", "paid")
    async def credit(messages: Any, context: Any) -> Any: ...

    assert {topic: each.expression for topic, each in consumer._subscriptions.items()} == {"orders": "paid", "refunds": "*"}
    assert consumer._listener is credit
    with pytest.raises(IllegalConfiguration, match="consumer g has a listener already, credit: put both decorators above one"):

        @consumer.consumes("gifts")
        def other(messages: Any, context: Any) -> Any: ...

    assert "gifts" not in consumer._subscriptions
