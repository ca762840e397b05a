"""Wrong settings of newcomers raise an error when the producer or consumer is created. The error names the intended setting."""

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
    "Producer": Producer,
    "TransactionProducer": lambda *group, **settings: TransactionProducer(*group, Listener(), **settings),
    "PushConsumer": PushConsumer,
    "PullConsumer": PullConsumer,
}


@pytest.mark.parametrize("client", MAKERS)
@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        ("my group", r"group 'my group'.*illegal characters"),
        ("", "group ''.*blank"),
        (None, "group must be a str, not None"),
        (7, "group must be a str, not an int"),
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
        ("Producer", "send_timeout_ms", "3000", r"send_timeout_ms must be an int, not '3000' \(a str\)"),
        ("Producer", "send_timeout_ms", 0, "send_timeout_ms must be at least 1, not 0"),
        ("Producer", "retry_times_when_send_failed", -1, "must be at least 0"),
        ("Producer", "compress_message_body_over", None, "must be an int"),
        ("Producer", "default_topic_queue_nums", 0, "must be at least 1"),
        ("TransactionProducer", "transaction_threads", 0, "must be at least 1"),
        ("TransactionProducer", "check_threads", True, "must be an int"),
        ("TransactionProducer", "check_request_hold_max", 1.5, "must be an int"),
        ("PushConsumer", "pull_batch_size", "32", r"pull_batch_size must be an int, not '32' \(a str\)"),
        ("PushConsumer", "consume_thread_max", 0, "must be between 1 and 1000"),
        ("PushConsumer", "message_model", "BROADCASTING", r"Did you mean MessageModel.BROADCASTING\?"),
        ("PushConsumer", "consume_timestamp_ms", "20261122", "must be an int"),
        ("PushConsumer", "max_reconsume_times", "3", "must be an int"),
        ("PushConsumer", "instance_name", 1, "instance_name must be a str, not an int"),
        ("PushConsumer", "local_offset_directory", "/tmp", "local_offset_directory must be a pathlib.Path, not a str"),
        ("PullConsumer", "pull_batch_size", 2000, "must be between 1 and 1024"),
        ("PullConsumer", "pull_threshold_for_queue", 0, "must be between 1 and 65535"),
        ("PullConsumer", "consume_timestamp_ms", 1.5, "must be an int"),
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
    with pytest.raises(IllegalConfiguration, match=rf"not '{given}' .* Did you mean ConsumeFromWhere\.{meant}\?"):
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
    [("my topic", "topic 'my topic'.*illegal characters"), (["orders"], "the topic must be a str, not a list")],
)
def test_a_subscription_needs_a_legal_topic(topic: Any, sentence: str) -> None:
    with pytest.raises(IllegalConfiguration, match=sentence):
        PushConsumer("g").subscribe(topic)


def test_tags_of_a_subscription_are_one_expression(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(IllegalConfiguration, match="the expression must be a str or a MessageSelector, not a list"):
        PushConsumer("g").subscribe("orders", ["created", "paid"])  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING):
        for right in ("*", "created", "created || paid"):
            Subscription.parse("orders", right, 1)
        assert caplog.messages == []
        for wrong in ("created,paid", "created|paid", "created or paid"):
            assert Subscription.parse("orders", wrong, 1).tags == {wrong}
    assert caplog.messages == [
        f"subscription of orders: {wrong!r} is one tag; join several tags with '||', as in 'a || b'"
        for wrong in ("created,paid", "created|paid", "created or paid")
    ]


def test_only_messages_can_be_sent() -> None:
    for given in ("text", None, b"bytes"):
        with pytest.raises(TypeError, match=r"message must be a Message, not .*: create one with Message.of\(topic, body\)"):
            check_message(given)  # type: ignore[arg-type]


def test_a_property_that_is_no_str_is_refused_before_it_is_sent() -> None:
    with pytest.raises(MessageRefused, match="property 'count' must be a str, not an int"):
        to_wire(Message(topic="orders", body=b"x", properties={"count": 1}))  # type: ignore[dict-item]


def test_arguments_of_calls_are_told_from_what_they_should_be() -> None:
    queue = MessageQueue("orders", "broker-a", 0)
    for wrong in (0, "orders", None):
        with pytest.raises(TypeError, match=r"queue must be a MessageQueue, not "):
            check_queue(wrong)
    for wrong in ("orders", queue, None, 3):
        with pytest.raises(TypeError, match=r"queues must be a list of MessageQueue, not "):
            check_queues(wrong)
    for wrong in ("messages", Message.of("orders", b"x"), None):
        with pytest.raises(TypeError, match="messages must be a list of messages, not "):
            check_batch(wrong)
    for wrong in ("3", 1.5, True):
        with pytest.raises(TypeError, match="must be an int"):
            check_number("offset", wrong, minimum=0)
    with pytest.raises(ValueError, match="offset must be at least 0, not -1"):
        check_number("offset", -1, minimum=0)
    with pytest.raises(ValueError, match="timeout_ms must be at least 1, not 0"):
        check_target(queue, 0)
    check_target(None, None)
    check_queues([queue])


@pytest.mark.parametrize("answer", [None, True, "COMMIT_MESSAGE", 0])
def test_what_a_transaction_listener_may_not_answer_is_said_with_what_it_may(
    answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    decision_and_failure(answer, None, "id")
    (line,) = caplog.messages
    assert line.startswith(f"the listener returned {answer!r} for transaction id, which counts as UNKNOWN")
    assert line.endswith("return LocalTransactionState.COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOWN")


def test_a_decorator_subscribes_and_registers_its_function_for_one_topic_or_several() -> None:
    consumer = PushConsumer("g")

    @consumer.consumes("refunds")
    @consumer.consumes("orders", "paid")
    async def credit(messages: Any, context: Any) -> Any: ...

    assert {topic: each.expression for topic, each in consumer._subscriptions.items()} == {"orders": "paid", "refunds": "*"}
    assert consumer._listener is credit
    with pytest.raises(
        IllegalConfiguration, match="consumer g already has a listener, credit: decorate the same function for each topic"
    ):

        @consumer.consumes("gifts")
        def other(messages: Any, context: Any) -> Any: ...

    assert "gifts" not in consumer._subscriptions
