"""Operators see and mend transactions: the command line against a running broker."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from rocketmq_broker.client import Producer, TransactionProducer
from rocketmq_broker.message import Message
from tests.conftest import BrokerProcess
from tests.e2e.clients import Inbox, consumer, running
from tests.e2e.tool import Tool
from tests.foreign.apache.cluster import apache_rocketmq
from tests.undecided import Undecided
from tests.waiting import until

pytestmark = pytest.mark.e2e
ONE_QUICK_CHECK = {"transactionTimeOut": "1500", "transactionCheckInterval": "1000", "transactionCheckMax": "1"}


async def test_a_transaction_is_listed_before_its_first_check(start_broker: Callable[..., BrokerProcess]) -> None:
    broker = start_broker({"transactionTimeOut": "600000", "transactionCheckMax": "1"})
    tool = Tool("--namesrv-addr", broker.namesrv_addr)
    assert await tool.said("pending") == "no pending transactions\n"
    assert await tool.said("discarded") == "no discarded messages\n"
    assert await tool.said("decided") == "nothing was decided by hand\n"

    async with running(TransactionProducer("orders", Undecided(), namesrv_addr=broker.namesrv_addr)) as producer:
        sent = await producer.send_message_in_transaction(Message.of("orders", b"kept", tags="created", keys=["order-1"]))
        question = ("pending", "--group", "orders", "--topic", "orders")
        async with asyncio.timeout(60):
            # The first heartbeat may come after the half message.
            while not (row := (await tool.rows(*question))[0])["isProducerOnline"]:  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.2)
    assert (row["transactionId"], row["keys"]) == (sent.transaction_id, ["order-1"])
    assert (row["checks"], row["checkMax"], row["broker"]) == (0, 1, broker.address)
    assert await tool.rows("pending", "--older-than", "1h") == []


async def test_a_hanging_transaction_goes_from_discarded_to_resumed_to_decided_to_delivered(
    start_broker: Callable[..., BrokerProcess],
) -> None:
    broker = start_broker(ONE_QUICK_CHECK)
    tool, inbox = Tool("--namesrv-addr", broker.namesrv_addr), Inbox()
    async with running(TransactionProducer("orders", Undecided(), namesrv_addr=broker.namesrv_addr)) as producer:
        sent = await producer.send_message_in_transaction(Message.of("orders", b"kept", tags="created", keys=["order-1"]))
        (lost,) = await tool.wait_for("discarded")
        assert await producer.count_discarded() == 1
    assert (lost["transactionId"], lost["checks"], lost["isResumed"]) == (sent.transaction_id, 1, False)
    lines = [line for line in broker.process.output().splitlines() if f"rocketmq_broker.admin resume {lost['messageId']}" in line]
    assert len(lines) == 1
    assert all(word in lines[0] for word in (" WARNING ", "topic orders", "group orders", sent.transaction_id, "order-1"))
    assert await tool.said("pending") == "no pending transactions\n"

    assert lost["messageId"] in await tool.said("resume", lost["messageId"])
    again = await tool("resume", sent.transaction_id)
    assert (again.returncode, "has been resumed already" in again.stderr) == (1, True)
    assert [row["isResumed"] for row in await tool.rows("discarded")] == [True]
    table = await tool.said("pending")
    assert all(word in table for word in (sent.transaction_id, "order-1", "1 of 1 pending transactions"))
    (resumed,) = await tool.rows("pending")
    assert (resumed["isProducerOnline"], resumed["checks"]) == (False, 0)

    async with running(consumer(broker.namesrv_addr, "credits", "orders", inbox)):
        said = await tool.said("decide", sent.transaction_id, "--commit", "--reason", "order 1 is paid; the service is gone")
        assert said.startswith("committed: ")
        await until(lambda: inbox.bodies == ["kept"])
        twice = await tool("decide", sent.transaction_id, "--rollback", "--reason", "second thoughts")
        assert (twice.returncode, twice.stdout) == (1, "")
        assert "is committed already; its first decision counts" in twice.stderr
    assert inbox.messages[0].transaction_id == sent.transaction_id
    story = await tool.rows("show", "order-1")
    assert [row["state"] for row in story] == ["discarded", "committed"]
    assert story[1]["reason"] == "order 1 is paid; the service is gone"
    (kept,) = await tool.rows("decided")
    assert (kept["transactionId"], kept["state"]) == (sent.transaction_id, "committed")
    assert "the service is gone" in await tool.said("decided")
    assert "the service is gone" in await tool.said("show", str(kept["halfOffset"]))
    assert inbox.bodies == ["kept"]


async def test_what_is_rolled_back_by_hand_is_never_delivered_and_a_restart_keeps_the_reason(
    start_broker: Callable[..., BrokerProcess],
) -> None:
    broker = start_broker({"transactionTimeOut": "60000"})
    tool, inbox = Tool("-b", broker.address), Inbox()
    async with running(TransactionProducer("orders", Undecided(), namesrv_addr=broker.namesrv_addr)) as producer:
        sent = await producer.send_message_in_transaction(Message.of("orders", b"dropped"))
    await tool.said("decide", sent.transaction_id, "--rollback", "--reason", "a test order")
    broker.process.kill()
    broker.process.start()
    async with (
        running(Producer("orders", namesrv_addr=broker.namesrv_addr)) as plain,
        running(consumer(broker.namesrv_addr, "credits", "orders", inbox)),
    ):
        await plain.send(Message.of("orders", b"after"))
        await until(lambda: inbox.bodies != [])
    assert inbox.bodies == ["after"]
    assert [(row["state"], row["reason"]) for row in await tool.rows("show", sent.transaction_id)] == [
        ("rolled back", "a test order")
    ]


async def test_refusals_and_wrong_command_lines_have_exit_codes_of_their_own(broker: BrokerProcess) -> None:
    tool = Tool("-b", broker.address)
    nobody = Tool("-b", "127.0.0.1:1")
    assert (await tool("show", "nothing")).returncode == 1
    assert (await tool("decide", "nothing", "--commit", "--reason", "x")).returncode == 1
    assert (await tool("resume", "nothing")).returncode == 1
    assert (await tool("resume", "0" * 32)).returncode == 1
    assert (await tool("decide", "nothing", "--commit")).returncode == 2
    assert (await tool("decide", "nothing", "--commit", "--reason", " ")).returncode == 2
    assert (await tool("pending", "--older-than", "soon")).returncode == 2
    assert (await nobody("pending")).returncode == 2
    assert (await Tool("-n", "127.0.0.1:1")("pending")).returncode == 2
    assert (await Tool("-b", "not an address")("pending")).returncode == 2


async def test_a_broker_without_these_requests_is_named_as_what_it_is(broker: BrokerProcess) -> None:
    # The name server answers an unknown request as Apache's broker does.
    done = await Tool("-b", broker.namesrv_addr)("pending")
    assert done.returncode == 1
    assert "Apache RocketMQ's brokers do not have it" in done.stderr


async def test_of_several_brokers_the_one_with_the_transaction_decides(
    start_broker: Callable[..., BrokerProcess],
) -> None:
    first = start_broker({"transactionTimeOut": "60000"})
    second = start_broker({"transactionTimeOut": "60000", "namesrvAddr": first.namesrv_addr})
    tool = Tool("-n", first.namesrv_addr)
    async with running(TransactionProducer("orders", Undecided(), namesrv_addr=first.namesrv_addr)) as producer:
        await producer.create_topic("orders", queue_count=1)
        sent = [await producer.send_message_in_transaction(Message.of("orders", b"%d" % number)) for number in range(4)]
    rows = await tool.rows("pending")
    assert {row["broker"] for row in rows} == {first.address, second.address}
    for number, one in enumerate(sent):
        await tool.said("decide", one.transaction_id, "--commit" if number % 2 else "--rollback", "--reason", "by turns")
    assert await tool.rows("pending") == []
    assert len(await tool.rows("decided")) == 4
    ambiguous = await tool("decide", str(rows[0]["halfOffset"]), "--commit", "--reason", "x")
    assert (ambiguous.returncode, "--broker-addr" in ambiguous.stderr) == (2, True)


@pytest.mark.java
@pytest.mark.slow
async def test_on_apaches_broker_discarded_messages_are_listed_and_resumed_once(tmp_path: Path) -> None:
    settings = {"TRANSACTION_TIMEOUT_MS": "1000", "CHECK_INTERVAL_MS": "1000", "CHECK_MAX": "1"}
    with apache_rocketmq(tmp_path / "apache", settings=settings) as namesrv_addr:
        tool, listener = Tool("-n", namesrv_addr), Undecided()
        assert await tool.said("discarded") == "no discarded messages\n"
        async with running(TransactionProducer("orders", listener, namesrv_addr=namesrv_addr)) as producer:
            sent = await producer.send_message_in_transaction(Message.of("orders", b"kept", keys=["order-1"]))
            (lost,) = await tool.wait_for("discarded")
            assert await producer.count_discarded() == 1
            assert (lost["transactionId"], lost["topic"], lost["isResumed"]) == (sent.transaction_id, "orders", False)
            for command in (["pending"], ["show", "order-1"], ["decided"], ["decide", "x", "--commit", "--reason", "y"]):
                done = await tool(*command)
                assert (done.returncode, "Apache RocketMQ's brokers do not have it" in done.stderr) == (1, True)
            await tool.said("resume", lost["messageId"])
            again = await tool("resume", lost["messageId"])
            assert (again.returncode, "has been resumed already" in again.stderr) == (1, True)
