"""Tests that `mqadmin consumerStatus` shows the same for a Python consumer and a Java consumer."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    EventLoopThread,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
)
from tests.conftest import BrokerProcess
from tests.foreign.clients.mqadmin.session import Mqadmin

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(600)]
TOPIC = "orders"
IN_JAVA, IN_PYTHON = "credits_in_java", "credits_in_python"
EXPRESSION = "paid || refunded"
OF_ONE_CONSUMER = {"consumerGroup", "consumeTimestamp", "PROP_NAMESERVER_ADDR", "PROP_CONSUMER_START_TIMESTAMP"}


@pytest.fixture
def mqadmin(broker: BrokerProcess, tmp_path: Path) -> Iterator[Mqadmin]:
    with Mqadmin(broker.namesrv_addr, tmp_path) as running:
        yield running


async def consume(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    return ConsumeStatus.CONSUME_SUCCESS


def client_of(mqadmin: Mqadmin, group: str) -> str:
    printed = mqadmin.run("consumerConnection", "-g", group)
    found = re.search(r"^(\S+@\S+) +\S+:\d+ ", printed, re.MULTILINE)
    assert found is not None, printed
    return found[1]


def status(mqadmin: Mqadmin, group: str, *more: str) -> str:
    return mqadmin.run("consumerStatus", "-g", group, "-i", client_of(mqadmin, group), *more)


def headings(printed: str) -> list[str]:
    return [line for line in printed.splitlines() if line.startswith("#")]


def properties(printed: str) -> dict[str, str]:
    section = printed.partition("#Consumer Properties#")[2].partition("\n#")[0]
    return dict(re.findall(r"^(\S+) +: (.*)$", section, re.MULTILINE))


def rows(printed: str, heading: str) -> list[str]:
    """Returns the lines below a heading, without values that differ between consumers: group, offsets, times and speeds."""
    section = printed.partition(heading)[2].partition("\n\n")[0]
    lines = [line for line in section.splitlines() if line and not line.startswith("#")]
    return [" ".join(re.sub(r"-?\d+(\.\d+)?", "N", re.sub(r"credits_in_\w+", "GROUP", line)).split()) for line in lines]


def test_a_consumer_in_python_is_shown_as_one_in_java(broker: BrokerProcess, mqadmin: Mqadmin) -> None:
    consumer = PushConsumer(
        IN_PYTHON, namesrv_addr=broker.namesrv_addr, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    )
    consumer.consumes(TOPIC, EXPRESSION)(consume)
    with EventLoopThread() as loop:
        with loop.running(Producer("shop", namesrv_addr=broker.namesrv_addr)) as producer:
            loop.run(producer.create_topic(TOPIC, 2))
            sent = loop.run(producer.send(Message.of(TOPIC, "order 1", tags="paid"), timeout_ms=30_000))
        with loop.running(consumer):
            mqadmin.run("consume", IN_JAVA, TOPIC, EXPRESSION)
            until_both_have_their_queues(mqadmin)
            ours, javas = status(mqadmin, IN_PYTHON), status(mqadmin, IN_JAVA)
            assert headings(ours) == headings(javas)
            for heading in ("#Consumer Subscription#", "#Consumer Offset#", "#Consumer MQ Detail#", "#Consumer RT&TPS#"):
                assert rows(ours, heading) == rows(javas, heading)
            assert {name for name in properties(javas) if name.startswith("PROP_")} <= properties(ours).keys()
            alike = properties(ours).keys() & properties(javas).keys() - OF_ONE_CONSUMER
            assert {name: properties(ours)[name] for name in alike} == {name: properties(javas)[name] for name in alike}
            assert len(alike) > 10

            assert "MainThread" in status(mqadmin, IN_PYTHON, "-s")
            assert "Rebalance OK" in mqadmin.run("consumerStatus", "-g", IN_PYTHON)
            again = mqadmin.run(
                "queryMsgById", "-i", sent.offset_message_id, "-g", IN_PYTHON, "-d", client_of(mqadmin, IN_PYTHON)
            )
            assert "consumeResult=CR_SUCCESS" in again


def until_both_have_their_queues(mqadmin: Mqadmin) -> None:
    """Waits until each consumer has the two queues of the topic and the queue of its retry topic."""
    deadline = time.monotonic() + 120
    while any(len(rows(status(mqadmin, group), "#Consumer Offset#")) < 3 for group in (IN_PYTHON, IN_JAVA)):
        assert time.monotonic() < deadline
        time.sleep(0.2)
