"""Operators see and treat dead letters: the command line against a running broker, and consumers that fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, Producer
from rocketmq_broker.message import Message, MessageExt
from tests.conftest import BrokerProcess
from tests.e2e.clients import PATIENT, Inbox, consumer, running
from tests.e2e.tool import Tool
from tests.foreign.apache.cluster import apache_rocketmq
from tests.waiting import until

pytestmark = pytest.mark.e2e


class Database:
    """What the consumer needs; its outage makes dead letters."""

    def __init__(self) -> None:
        self.is_there = False

    def consume(self, message: MessageExt, context: ConsumeContext) -> ConsumeStatus:
        if self.is_there:
            return ConsumeStatus.CONSUME_SUCCESS
        context.delay_level_when_next_consume = 1
        return ConsumeStatus.RECONSUME_LATER


def attempts(inbox: Inbox, body: str = "kept") -> list[int]:
    """How often the message had been redelivered at each of its deliveries."""
    return [message.reconsume_times for message in inbox.messages if message.body.decode() == body]


def an_order(body: bytes = b"kept", key: str = "order-1") -> Message:
    return Message.of("orders", body, tags="created", keys=[key], user_properties={"customer": "ada"})


async def dead_letters(broker: BrokerProcess, count: int) -> None:
    """Returns once the broker's log tells of so many."""
    await until(lambda: broker.process.output().count("dead letter: ") == count)


async def test_a_dead_letter_is_found_shown_and_retried_for_its_group_alone(broker: BrokerProcess) -> None:
    tool, database = Tool("-n", broker.namesrv_addr), Database()
    failing, others = Inbox(database.consume), Inbox()
    assert await tool.said("dead-letters", "list") == "no dead letters\n"
    async with (
        running(consumer(broker.namesrv_addr, "credits", "orders", failing, max_reconsume_times=1)),
        running(consumer(broker.namesrv_addr, "mails", "orders", others)),
        running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer,
    ):
        sent = await producer.send(an_order())
        await dead_letters(broker, 1)
        (letter,) = await tool.rows("dead-letters", "list", "credits")
        assert attempts(failing) == [0, 1]
        assert (letter["messageId"], letter["topic"], letter["keys"]) == (sent.message_id, "orders", ["order-1"])
        assert (letter["consumerGroup"], letter["retries"], letter["treatment"]) == ("credits", 0, None)
        (group,) = await tool.rows("dead-letters", "list")
        assert (group["consumerGroup"], group["untreated"], group["total"]) == ("credits", 1, 1)
        (shown,) = await tool.rows("dead-letters", "show", "order-1")
        assert (shown["body"], shown["properties"]["customer"], shown["history"]) == ("kept", "ada", [])
        place = letter["offsetMessageId"]
        log_lines = [line for line in broker.process.output().splitlines() if f"dead-letters retry {place}" in line]
        assert len(log_lines) == 1
        assert " WARNING " in log_lines[0]

        said = await tool.said("dead-letters", "retry", sent.message_id, "--reason", "the database is back soon")
        assert said.startswith(f"retried: {place} goes to the consumer group credits once more (retry 1, broker ")
        await dead_letters(broker, 2)
        (again,) = await tool.rows("dead-letters", "list", "credits")
        assert attempts(failing) == [0, 1, 0, 1]
        assert (again["messageId"], again["retries"], again["treatment"]) == (sent.message_id, 1, None)
        assert again["offsetMessageId"] != place

        database.is_there = True
        await tool.said("dead-letters", "retry", "order-1")
        await until(lambda: attempts(failing) == [0, 1, 0, 1, 0])
    (first, *_, last) = failing.messages
    assert (last.topic, last.message_id, last.tags) == (first.topic, first.message_id, first.tags)
    of_sending_back = {"DEAD_LETTER_RETRIES", "RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "REAL_TOPIC", "REAL_QID", "WAIT"}
    kept = {name: value for name, value in last.properties.items() if name not in of_sending_back | {"MIN_OFFSET", "MAX_OFFSET"}}
    assert first.properties.items() >= kept.items()
    assert (kept["customer"], last.properties["DEAD_LETTER_RETRIES"]) == ("ada", "2")
    assert others.bodies == ["kept"]
    assert await tool.said("dead-letters", "list", "credits") == "no dead letters of credits that nobody has treated\n"
    treated = await tool.said("dead-letters", "list", "credits", "--treated")
    assert treated.count("retried") == 2
    assert "retried: the database is back soon" in treated


async def test_what_was_retried_is_retried_again_only_if_that_is_meant(broker: BrokerProcess) -> None:
    tool, database = Tool("-b", broker.address), Database()
    inbox = Inbox(database.consume)
    async with (
        running(consumer(broker.namesrv_addr, "credits", "orders", inbox, max_reconsume_times=0)),
        running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer,
    ):
        await producer.send(an_order())
        await dead_letters(broker, 1)
        (letter,) = await tool.rows("dead-letters", "list", "credits")
        database.is_there = True
        place = letter["offsetMessageId"]
        await tool.said("dead-letters", "retry", place)
        await until(lambda: len(inbox.messages) == 2)

        assert "was retried already; --again retries it all the same" in await tool.refused("dead-letters", "retry", place)
        assert "was retried already" in await tool.refused("dead-letters", "dismiss", place, "--reason", "second thoughts")
        assert "(retry 2, broker " in await tool.said("dead-letters", "retry", place, "--again")
        await until(lambda: len(inbox.messages) == 3)
    (shown,) = await tool.rows("dead-letters", "show", place)
    assert [(one["treatment"], one["retries"]) for one in shown["history"]] == [("retried", 2), ("retried", 1)]


async def test_a_dismissed_letter_leaves_the_list_and_keeps_its_reason_over_a_kill(broker: BrokerProcess) -> None:
    tool, inbox = Tool("-n", broker.namesrv_addr), Inbox(Database().consume)
    async with (
        running(consumer(broker.namesrv_addr, "credits", "orders", inbox, max_reconsume_times=0)),
        running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer,
    ):
        for number in range(3):
            await producer.send(an_order(b"%d" % number, f"order-{number}"))
            await dead_letters(broker, number + 1)
    said = await tool.said("dead-letters", "dismiss", "order-1", "--reason", "a test order")
    assert said.endswith("of the consumer group credits; reason: a test order\n")
    broker.process.kill()
    broker.process.start()

    assert "discarded messages that wait for a person: 0; dead letters: 2." in broker.process.output()
    (group,) = await tool.rows("dead-letters", "list")
    assert (group["untreated"], group["total"]) == (2, 3)
    assert [row["keys"] for row in await tool.rows("dead-letters", "list", "credits")] == [["order-2"], ["order-0"]]
    oldest = await tool.rows("dead-letters", "list", "credits", "--oldest-first", "--limit", "1")
    assert [row["keys"] for row in oldest] == [["order-0"]]
    (shown,) = await tool.rows("dead-letters", "show", "order-1")
    (mark,) = shown["history"]
    assert (mark["treatment"], mark["reason"]) == ("dismissed", "a test order")
    assert "a test order" in await tool.said("dead-letters", "show", "order-1")
    assert (
        len((await tool.said("dead-letters", "dismiss", "-g", "credits", "--all", "--reason", "all of them")).splitlines()) == 2
    )
    assert await tool.said("dead-letters", "retry", "-g", "credits", "--all") == (
        "no dead letters of credits that nobody has treated\n"
    )


async def test_all_dead_letters_of_a_group_are_retried_at_once(broker: BrokerProcess) -> None:
    tool, database = Tool("-n", broker.namesrv_addr), Database()
    inbox = Inbox(database.consume)
    async with (
        running(consumer(broker.namesrv_addr, "credits", "orders", inbox, max_reconsume_times=0)),
        running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer,
    ):
        for number in range(40):
            await producer.send(an_order(b"%d" % number, f"order-{number}"))
        await dead_letters(broker, 40)
        database.is_there = True
        said = await tool.said("dead-letters", "retry", "--group", "credits", "--all", "--reason", "the database is back")
        assert len(said.splitlines()) == 40
        await until(lambda: len(inbox.messages) == 80)
    assert sorted(inbox.bodies[40:]) == sorted(str(number) for number in range(40))
    assert await tool.rows("dead-letters", "list", "credits") == []


async def test_wrong_command_lines_and_refusals_have_exit_codes_of_their_own(broker: BrokerProcess) -> None:
    tool = Tool("-b", broker.address)
    assert "there is no dead letter nothing" in await tool.refused("dead-letters", "show", "nothing")
    assert "of the consumer group credits" in await tool.refused("dead-letters", "retry", "nothing", "-g", "credits")
    assert "there is no dead letter" in await tool.refused("dead-letters", "retry", "0" * 32)
    for wrong in (
        ["retry"],
        ["retry", "--all"],
        ["retry", "x", "--group", "credits", "--all"],
        ["dismiss", "x"],
        ["dismiss", "x", "--reason", " "],
        ["list", "--limit", "0"],
    ):
        assert (await tool("dead-letters", *wrong)).returncode == 2
    assert (await Tool("-b", "127.0.0.1:1")("dead-letters", "list")).returncode == 2


async def test_of_several_brokers_each_treats_its_own(start_broker: Callable[..., BrokerProcess]) -> None:
    first = start_broker()
    second = start_broker({"namesrvAddr": first.namesrv_addr})
    tool, database = Tool("-n", first.namesrv_addr), Database()
    inbox = Inbox(database.consume)
    async with running(Producer("p", namesrv_addr=first.namesrv_addr, **PATIENT)) as producer:
        await producer.create_topic("orders", queue_count=1)
        async with running(consumer(first.namesrv_addr, "credits", "orders", inbox, max_reconsume_times=0)):
            for number in range(4):
                await producer.send(an_order(b"%d" % number, f"order-{number}"))
            await dead_letters(first, 2)
            await dead_letters(second, 2)
            rows = await tool.rows("dead-letters", "list", "credits")
            assert {row["broker"] for row in rows} == {first.address, second.address}
            database.is_there = True
            said = await tool.said("dead-letters", "retry", *(row["offsetMessageId"] for row in rows))
            assert len(said.splitlines()) == 4
            await until(lambda: len(inbox.messages) == 8)


@pytest.mark.java
@pytest.mark.slow
async def test_apaches_broker_lists_shows_and_retries_and_cannot_dismiss(tmp_path: Path) -> None:
    with apache_rocketmq(tmp_path / "apache") as namesrv_addr:
        tool, database = Tool("-n", namesrv_addr), Database()
        inbox, others = Inbox(database.consume), Inbox()
        async with (
            running(consumer(namesrv_addr, "credits", "orders", inbox, max_reconsume_times=0)),
            running(consumer(namesrv_addr, "mails", "orders", others)),
            running(Producer("p", namesrv_addr=namesrv_addr, **PATIENT)) as producer,
        ):
            sent = await producer.send(an_order())
            (letter,) = await tool.wait_for("dead-letters", "list", "credits")
            (group,) = await tool.rows("dead-letters", "list")
            assert (group["consumerGroup"], group["untreated"], group["total"]) == ("credits", None, 1)
            (shown,) = await tool.rows("dead-letters", "show", sent.message_id)
            assert (shown["body"], shown["properties"]["customer"]) == ("kept", "ada")
            refusal = await tool.refused("dead-letters", "dismiss", "order-1", "--reason", "x")
            assert "Apache RocketMQ's brokers do not have it" in refusal

            database.is_there = True
            await tool.said("dead-letters", "retry", "order-1")
            await until(lambda: attempts(inbox) == [0, 0])
            assert "was retried already; --again" in await tool.refused("dead-letters", "retry", letter["offsetMessageId"])
            await tool.said("dead-letters", "retry", "order-1", "--again")
            await until(lambda: attempts(inbox) == [0, 0, 0])
        last = inbox.messages[-1]
        assert (last.topic, last.message_id, last.properties["customer"]) == ("orders", sent.message_id, "ada")
        assert last.properties["DEAD_LETTER_RETRIES"] == "2"
        assert others.bodies == ["kept"]
