"""Tests the messages that a pull loop passes on, and how it continues after failures."""

import asyncio
from collections.abc import Callable

import pytest

from rocketmq_broker.client import BrokerError, BrokerUnreachable
from rocketmq_broker.client.pull import pull_loop
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.client.pull.pull_loop import PullEvents, PullLoop, PullSettings, with_real_topic
from rocketmq_broker.client.pull.queue_requests import PullAnswer
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.world import World
from tests.unit.client.messages import QUEUE, message, offsets

Answer = PullAnswer | Exception


def found(*queue_offsets: int, next_offset: int | None = None) -> PullAnswer:
    messages = [message(offset) for offset in queue_offsets]
    return PullAnswer(messages, queue_offsets[-1] + 1 if next_offset is None else next_offset, 0, 100, False, 0)


class Run:
    """One run of a loop against a broker that gives these responses and then none."""

    def __init__(self, *answers: Answer, begin: int = 0, settings: PullSettings | None = None) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, int | None]] = []
        self.events: list[tuple[str, object]] = []
        self.queue = ProcessQueue(QUEUE, begin, World())
        self.loop = PullLoop(
            "group",
            self.queue,
            lambda: Subscription.parse("orders", "*", 1),
            self,  # type: ignore[arg-type]
            settings or PullSettings(),
            PullEvents(
                on_messages=lambda _, messages: self.events.append(("messages", offsets(messages))),
                on_progress=lambda queue: self.events.append(("progress", queue.committable_offset)),
                on_illegal_offset=lambda _, offset: self.events.append(("illegal", offset)),
                on_subscription_unknown=lambda: self.events.append(("forgotten", None)),
            ),
        )

    async def pull(self, group: str, queue: object, offset: int, *, commit_offset: int | None, **_: object) -> PullAnswer:
        self.asked.append((offset, commit_offset))
        answer = self.answers.pop(0)
        if not self.answers:
            self.queue.drop()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def to_its_end(self) -> None:
        async with asyncio.timeout(5):
            await self.loop.run()


LAST = found(99)
"""Answers after the queue was dropped do not count; each run ends with one."""


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(pause_s: float) -> None: ...

    monkeypatch.setattr(pull_loop.asyncio, "sleep", sleep)


async def test_each_pull_goes_on_where_the_last_one_ended() -> None:
    run = Run(found(0, 1), found(2), LAST)
    await run.to_its_end()
    assert [offset for offset, _ in run.asked] == [0, 2, 3]
    assert run.events == [("messages", [0, 1]), ("messages", [2])]


async def test_a_pull_tells_the_broker_how_far_the_group_has_come() -> None:
    run = Run(found(5, 6), LAST, begin=5)
    await run.to_its_end()
    assert run.asked == [(5, 5), (7, 5)]


async def test_what_the_broker_filtered_out_counts_as_progress() -> None:
    run = Run(PullAnswer([], 40, 0, 100, False, 0), LAST)
    await run.to_its_end()
    assert run.events == [("progress", 40)]


async def test_an_illegal_offset_ends_the_loop_and_says_where_to_go_on() -> None:
    run = Run(PullAnswer([], 70, 70, 100, True, 0), LAST, begin=3)
    await run.to_its_end()
    assert run.events == [("illegal", 70)]
    assert len(run.asked) == 1


@pytest.mark.parametrize("failure", [BrokerUnreachable("down"), BrokerError(ResponseCode.SYSTEM_ERROR, "disk")])
async def test_a_failure_is_waited_out_at_the_same_offset(failure: Exception) -> None:
    run = Run(failure, failure, found(0), LAST)
    await run.to_its_end()
    assert [offset for offset, _ in run.asked] == [0, 0, 0, 1]
    assert ("messages", [0]) in run.events


@pytest.mark.parametrize("code", [ResponseCode.SUBSCRIPTION_NOT_EXIST, ResponseCode.SUBSCRIPTION_NOT_LATEST])
async def test_a_broker_that_forgot_the_group_gets_a_heartbeat(code: ResponseCode) -> None:
    run = Run(BrokerError(code, "who?"), LAST)
    await run.to_its_end()
    assert run.events == [("forgotten", None)]


async def test_answers_that_come_after_the_queue_was_lost_are_dropped() -> None:
    run = Run(found(0))
    await run.to_its_end()
    assert run.events == []


async def test_pulling_pauses_while_the_listeners_are_behind() -> None:
    run = Run(found(0, 1, 2), found(3), LAST, settings=PullSettings(max_count=2))
    real_is_full: Callable[..., bool] = run.queue.is_full
    checks: list[bool] = []

    def is_full(**limits: int) -> bool:
        checks.append(real_is_full(**limits))
        if len(checks) == 5:
            run.queue.acknowledge([0, 1, 2])
        return checks[-1]

    run.queue.is_full = is_full  # type: ignore[method-assign]
    await run.to_its_end()
    assert checks[:6] == [False, True, True, True, True, False]
    assert [offset for offset, _ in run.asked] == [0, 3, 4]


async def test_what_is_pulled_from_the_retry_topic_is_handed_on_as_any_other() -> None:
    run = Run(found(7, 8), LAST)
    run.queue.queue = MessageQueue("%RETRY%group", "broker-a", 0)
    await run.to_its_end()
    assert run.events == [("messages", [7, 8])]


@pytest.mark.parametrize(
    ("topic", "properties", "real"),
    [
        ("%RETRY%group", {"RETRY_TOPIC": "orders"}, "orders"),
        ("payments", {"RETRY_TOPIC": "orders"}, "payments"),
        ("%RETRY%group", {}, "%RETRY%group"),
    ],
)
def test_only_a_message_from_the_retry_topic_has_its_real_topic_again(topic: str, properties: dict[str, str], real: str) -> None:
    assert with_real_topic(message(0, topic=topic, properties=properties)).topic == real
