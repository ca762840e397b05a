"""Tests of subscriptions by message properties, with this project's broker and with Apache's."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.ports import free_ports
from demo.processes import Processes
from demo.system import add_broker
from rocketmq_broker.client import (
    BrokerError,
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    IllegalConfiguration,
    MessageSelector,
    Producer,
    PullConsumer,
    PushConsumer,
)
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.protocol.codes import ResponseCode
from tests.conftest import BrokerProcess
from tests.e2e.clients import PATIENT, Inbox, running, until_there_are
from tests.foreign.apache.cluster import apache_rocketmq
from tests.waiting import until

KIT = Path(__file__).parent / "java" / "run"
KIT_SECONDS = 300

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
on_both = pytest.mark.parametrize(
    "namesrv_addr", ["ours", pytest.param("apache", marks=[pytest.mark.java, pytest.mark.slow])], indirect=True
)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("ours")
    namesrv_port, port = free_ports(2)
    settings = {"listenPort": str(port), "namesrvListenPort": str(namesrv_port), "enablePropertyFilter": "true"}
    with Processes(home / "logs") as processes:
        add_broker(processes, home, settings).start()
        yield f"127.0.0.1:{namesrv_port}"


@pytest.fixture(scope="module")
def apaches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"PROPERTIES": "enablePropertyFilter=true brokerFastFailureEnable=false"}
    with apache_rocketmq(tmp_path_factory.mktemp("apache"), settings=settings) as namesrv_addr:
        yield namesrv_addr


@pytest.fixture
def namesrv_addr(request: pytest.FixtureRequest) -> str:
    """Returns the name server address of a broker with enablePropertyFilter."""
    return str(request.getfixturevalue({"ours": "ours", "apache": "apaches"}[request.param]))


def by_sql(namesrv_addr: str, expression: str, inbox: Inbox, topic: str, group: str) -> PushConsumer:
    consumer = PushConsumer(group, namesrv_addr=namesrv_addr, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer.subscribe(topic, MessageSelector.by_sql(expression))
    consumer.register_message_listener(inbox)
    return consumer


async def send_numbered(producer: Producer, topic: str, numbers: range) -> None:
    for number in numbers:
        await producer.send(Message.of(topic, b"%d" % number, tags="tag", user_properties={"n": str(number)}))


@on_both
async def test_a_consumer_gets_the_messages_whose_properties_match_and_their_redeliveries(namesrv_addr: str) -> None:
    def once_more(message: MessageExt, context: ConsumeContext) -> ConsumeStatus:
        context.delay_level_when_next_consume = 1
        is_again = message.body == b"7" and message.reconsume_times == 0
        return ConsumeStatus.RECONSUME_LATER if is_again else ConsumeStatus.CONSUME_SUCCESS

    inbox, everything = Inbox(once_more), Inbox()
    async with running(Producer("p", namesrv_addr=namesrv_addr, **PATIENT)) as producer:
        await producer.create_topic("pushed", 2)
        consumers = (
            by_sql(namesrv_addr, "n BETWEEN 5 AND 8 AND TAGS = 'tag'", inbox, "pushed", "some"),
            by_sql(namesrv_addr, "n IS NOT NULL", everything, "pushed", "all"),
        )
        async with running(*consumers):
            await send_numbered(producer, "pushed", range(12))
            await until(lambda: len(everything.bodies) == 12 and len(inbox.bodies) >= 5)
    assert sorted(inbox.bodies) == ["5", "6", "7", "7", "8"]
    assert sorted(map(int, everything.bodies)) == list(range(12))


@on_both
async def test_a_pull_consumer_polls_and_pulls_by_properties(namesrv_addr: str) -> None:
    async with (
        running(Producer("p", namesrv_addr=namesrv_addr, **PATIENT)) as producer,
        running(PullConsumer("pulling", namesrv_addr=namesrv_addr)) as pulling,
    ):
        await producer.create_topic("pulled", 1)
        await send_numbered(producer, "pulled", range(10))
        (queue,) = await pulling.queues("pulled")
        await until_there_are(pulling, "pulled", 10)
        pulled = await pulling.pull(queue, 0, expression=MessageSelector.by_sql("n > 6"))
        assert ([message.body for message in pulled.messages], pulled.next_offset) == ([b"7", b"8", b"9"], 10)
        pulling.assign([queue], MessageSelector.by_sql("n < 2"))
        polled: list[bytes] = []
        while len(polled) < 2:
            polled += [message.body for message in await pulling.poll(60_000)]
        assert polled == [b"0", b"1"]


@on_both
@pytest.mark.parametrize("expression", ["n >", "n > 'text'"])
async def test_a_consumer_with_a_wrong_expression_does_not_start_and_can_be_mended(namesrv_addr: str, expression: str) -> None:
    inbox = Inbox()
    async with running(Producer("p", namesrv_addr=namesrv_addr, **PATIENT)) as producer:
        await producer.create_topic("mended", 1)
        consumer = by_sql(namesrv_addr, expression, inbox, "mended", "mending")
        with pytest.raises(IllegalConfiguration, match=r"subscription of mended by SQL92 .* answered code 23"):
            await consumer.start()
        consumer.subscribe("mended", MessageSelector.by_sql("n = 3"))
        async with running(consumer):
            await send_numbered(producer, "mended", range(5))
            await until(lambda: bool(inbox.bodies))
    assert set(inbox.bodies) == {"3"}


async def test_without_the_property_filter_a_broker_says_so(broker: BrokerProcess) -> None:
    async with running(Producer("p", namesrv_addr=broker.namesrv_addr)) as producer:
        await producer.create_topic("orders", 1)
        with pytest.raises(IllegalConfiguration, match="does not support consumer to filter message by SQL92"):
            await by_sql(broker.namesrv_addr, "n = 3", Inbox(), "orders", "group").start()
        async with running(PullConsumer("pulling", namesrv_addr=broker.namesrv_addr)) as pulling:
            (queue,) = await pulling.queues("orders")
            with pytest.raises(BrokerError) as refused:
                await pulling.pull(queue, 0, expression=MessageSelector.by_sql("n = 3"))
    assert refused.value.code == ResponseCode.SYSTEM_ERROR


@pytest.mark.java
@pytest.mark.slow
def test_apaches_java_client_filters_at_apaches_broker_as_it_does_at_ours(apaches: str) -> None:
    cases = ("sql-filter", "sql-filter-conversions", "sql-filter-redelivery", "sql-filter-pull", "sql-filter-illegal")
    run = subprocess.run([KIT, apaches, *cases], capture_output=True, text=True, timeout=KIT_SECONDS)
    assert run.returncode == 0, run.stdout + run.stderr
