"""Tests the effect of a namespace on names, messages, queues and listeners."""

import asyncio
from typing import cast

import pytest

from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeStatus,
    IllegalConfiguration,
    Message,
    MessageExt,
    MessageQueue,
    Producer,
    PullConsumer,
    PushConsumer,
)
from rocketmq_broker.client.checks.listener_check import is_async
from rocketmq_broker.client.instance.namespace import NO_NAMESPACE, Namespace
from rocketmq_broker.client.push.listener_call import with_namespace
from tests.unit.client.messages import message

TENANT = Namespace("tenant")
QUEUE = MessageQueue("tenant%orders", "a", 1)


@pytest.mark.parametrize(
    ("name", "wrapped"),
    [
        ("orders", "tenant%orders"),
        ("%RETRY%group", "%RETRY%tenant%group"),
        ("%DLQ%group", "%DLQ%tenant%group"),
        ("other%orders", "tenant%other%orders"),
    ],
)
def test_a_name_is_wrapped_once_and_unwrapped(name: str, wrapped: str) -> None:
    assert TENANT.wrap(name) == TENANT.wrap(wrapped) == wrapped
    assert TENANT.unwrap(wrapped) == TENANT.unwrap(name) == name


@pytest.mark.parametrize("name", ["RMQ_SYS_TRANS_HALF_TOPIC", "TBW102", "rmq_sys_POP_LOG_TOPIC", "CID_RMQ_SYS_TRANS"])
def test_a_name_of_the_system_stays(name: str) -> None:
    assert TENANT.wrap(name) == TENANT.unwrap(name) == name


def test_a_name_of_another_namespace_stays() -> None:
    assert TENANT.unwrap("%RETRY%other%group") == "%RETRY%other%group"


def test_a_message_to_send_names_its_namespace_and_a_reply_goes_to_the_cluster() -> None:
    sent = TENANT.wrap_message(Message.of("orders", "1", keys=["k"]))
    assert (sent.topic, dict(sent.properties)) == ("tenant%orders", {"KEYS": "k", "INSTANCE_ID": "tenant"})
    reply = Message.of("Cluster_REPLY_TOPIC", "1").with_properties({"MSG_TYPE": "reply"})
    assert TENANT.wrap_message(reply) is reply


@pytest.mark.parametrize("namespace", [NO_NAMESPACE, Namespace(""), Namespace(None)])
def test_without_a_namespace_nothing_is_copied(namespace: Namespace) -> None:
    sent = message(1)
    messages = [sent]
    assert namespace.wrap(QUEUE.topic) == namespace.unwrap(QUEUE.topic) == QUEUE.topic
    assert namespace.wrap_message(sent) is namespace.unwrap_message(sent) is sent
    assert namespace.unwrap_messages(messages) is messages
    assert namespace.wrap_queue(QUEUE) is namespace.unwrap_queue(QUEUE) is QUEUE
    assert with_namespace(plain, namespace) is plain


def plain(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    assert (messages[0].topic, context.message_queue.topic) == ("orders", "orders")
    return ConsumeStatus.CONSUME_SUCCESS


async def as_a_task(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    await asyncio.sleep(0)
    return plain(messages, context)


async def test_a_listener_sees_the_names_of_its_program_and_stays_what_it_is() -> None:
    messages = [message(1, topic="tenant%orders")]
    function, task = with_namespace(plain, TENANT), with_namespace(as_a_task, TENANT)
    assert (is_async(function), is_async(task)) == (False, True)
    assert function(messages, ConsumeContext(QUEUE)) is ConsumeStatus.CONSUME_SUCCESS
    running = task(messages, ConsumeContext(QUEUE))
    assert asyncio.iscoroutine(running)
    assert await running is ConsumeStatus.CONSUME_SUCCESS


@pytest.mark.parametrize(
    ("name", "words"), [("a%b", "namespace 'a%b' must not contain %"), (1, "namespace must be a str, not an int")]
)
def test_what_is_no_namespace_is_refused(name: object, words: str) -> None:
    with pytest.raises(IllegalConfiguration, match=words):
        Namespace(cast(str, name))


@pytest.mark.parametrize("client", [Producer, PullConsumer, PushConsumer])
def test_a_name_that_the_namespace_makes_illegal_is_refused(client: type[Producer | PullConsumer | PushConsumer]) -> None:
    with pytest.raises(IllegalConfiguration, match="longer than"):
        client("g" * 250, namespace="tenant")
    with pytest.raises(IllegalConfiguration, match="illegal character"):
        client("group", namespace="a tenant")
