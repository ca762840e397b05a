"""Tests which attempts a send makes, and the error if all of them fail."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from rocketmq_broker.client import BrokerError, BrokerUnreachable, MessageRefused, SendFailed, SendResult, SendStatus
from rocketmq_broker.client.producer.message_sender import MessageSender, SendSettings
from rocketmq_broker.client.producer.wire_message import WireMessage
from rocketmq_broker.message import Message, MessageQueue
from rocketmq_broker.message.ids import UniqueIdMaker
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.world import World

A, B = MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-b", 0)
MESSAGE = Message.of("orders", b"x")


class Cluster:
    """Routes and brokers. `failures` maps a broker's name to the function that returns its error.

    A broker responds with its status in `statuses`, and with SEND_OK without one.
    """

    def __init__(self, *queues: MessageQueue, failures: dict[str, Callable[[], Exception]] | None = None) -> None:
        self.queues = list(queues)
        self.failures = failures or {}
        self.statuses: dict[str, SendStatus] = {}
        self.tried: list[str] = []
        self.ids: list[str] = []
        self.waits_ms: dict[str, int] = {}
        """The time-out of the first attempt at each broker."""

    async def queues_to_publish(self, topic: str) -> list[MessageQueue]:
        return self.queues

    def refresh_soon(self) -> None:
        pass

    async def send_message(
        self, group: str, wire: WireMessage, queue: MessageQueue, *, born_ms: int, timeout_ms: int
    ) -> SendResult:
        self.tried.append(queue.broker_name)
        self.ids.append(wire.unique_id)
        self.waits_ms.setdefault(queue.broker_name, timeout_ms)
        if queue.broker_name in self.failures:
            raise self.failures[queue.broker_name]()
        status = self.statuses.get(queue.broker_name, SendStatus.SEND_OK)
        return SendResult(send_status=status, message_id=wire.unique_id, offset_message_id="", queue=queue, queue_offset=0)


def sender(cluster: Cluster, timeout_ms: int = 3000) -> MessageSender:
    settings = SendSettings(timeout_ms=timeout_ms)
    return MessageSender("group", cluster, cluster, UniqueIdMaker(World()), settings, World())  # type: ignore[arg-type]


def unreachable() -> Exception:
    return BrokerUnreachable("connection refused")


def refusing(code: ResponseCode) -> Callable[[], Exception]:
    return lambda: BrokerError(code, "no")


async def test_a_broker_that_is_away_is_followed_by_another() -> None:
    cluster = Cluster(A, B, failures={"broker-a": unreachable})
    for _ in range(4):
        assert (await sender(cluster).send(MESSAGE)).queue == B


@pytest.mark.parametrize("turns", range(5))
async def test_a_send_that_is_cancelled_ends_by_that_whenever_it_comes(turns: int) -> None:
    class SlowBroker(Cluster):
        async def send_message(self, *_: object, **__: object) -> SendResult:
            await asyncio.sleep(0.5)
            raise AssertionError("the cancellation was lost")

    sending = asyncio.create_task(sender(SlowBroker(A)).send(MESSAGE))
    for _ in range(turns):
        await asyncio.sleep(0)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending


async def test_three_attempts_with_one_id_are_made_and_the_last_failure_is_the_cause() -> None:
    cluster = Cluster(A, failures={"broker-a": unreachable})
    with pytest.raises(SendFailed, match="connection refused") as raised:
        await sender(cluster).send(MESSAGE)
    assert isinstance(raised.value.__cause__, BrokerUnreachable)
    assert cluster.tried == ["broker-a"] * 3
    assert len(set(cluster.ids)) == 1


async def test_each_attempt_of_a_half_message_is_a_transaction_of_its_own() -> None:
    cluster = Cluster(A, failures={"broker-a": unreachable})
    with pytest.raises(SendFailed):
        await sender(cluster).send(MESSAGE.with_properties({"UNIQ_KEY": "MINE"}), new_id_each_attempt=True)
    assert len(set(cluster.ids)) == 3
    assert "MINE" not in cluster.ids


async def test_the_result_of_a_half_message_has_the_id_of_the_attempt_that_was_stored() -> None:
    cluster = Cluster(A, failures={"broker-a": unreachable})

    async def send_message(group: str, wire: WireMessage, queue: MessageQueue, *, born_ms: int, timeout_ms: int) -> SendResult:
        if cluster.tried:
            cluster.failures.clear()
        return await Cluster.send_message(cluster, group, wire, queue, born_ms=born_ms, timeout_ms=timeout_ms)

    cluster.send_message = send_message  # type: ignore[method-assign]
    result = await sender(cluster).send(MESSAGE, new_id_each_attempt=True)
    assert len(set(cluster.ids)) == 2
    assert result.message_id == cluster.ids[-1]


@pytest.mark.parametrize(("code", "attempts"), [(ResponseCode.MESSAGE_ILLEGAL, 1), (ResponseCode.SYSTEM_BUSY, 3)])
async def test_only_a_refusal_of_the_moment_is_tried_again_and_each_is_raised(code: ResponseCode, attempts: int) -> None:
    cluster = Cluster(A, B, failures=dict.fromkeys(("broker-a", "broker-b"), refusing(code)))
    with pytest.raises(BrokerError) as raised:
        await sender(cluster).send(MESSAGE)
    assert (raised.value.code, len(cluster.tried)) == (code, attempts)


async def test_the_time_for_everything_limits_the_attempts() -> None:
    cluster = Cluster(A, failures={"broker-a": unreachable})
    with pytest.raises(SendFailed):
        await sender(cluster, timeout_ms=50).send(MESSAGE)
    assert cluster.tried == ["broker-a"]


async def test_a_queue_that_was_chosen_is_tried_once_and_no_other() -> None:
    cluster = Cluster(A, B, failures={"broker-a": unreachable})
    with pytest.raises(SendFailed):
        await sender(cluster).send(MESSAGE, A)
    assert cluster.tried == ["broker-a"]


async def test_what_can_never_be_sent_reaches_no_broker() -> None:
    cluster = Cluster(A)
    with pytest.raises(MessageRefused):
        await sender(cluster).send(Message.of("orders", b""))
    with pytest.raises(MessageRefused):
        await sender(cluster).send_batch([MESSAGE, Message.of("other", b"x")])
    assert cluster.tried == []


@pytest.mark.parametrize(
    ("queues", "is_half_message", "most_ms"),
    [((A, B), True, 1500), ((A,), True, 3000), ((A, B), False, 3000)],
    ids=["a half message leaves time for another broker", "the only broker has all of it", "a second message is none"],
)
async def test_how_long_an_attempt_waits_for_a_broker_that_hangs(
    queues: tuple[MessageQueue, ...], is_half_message: bool, most_ms: int
) -> None:
    cluster = Cluster(*queues, failures={"broker-a": unreachable})
    while "broker-a" not in cluster.waits_ms:
        with contextlib.suppress(SendFailed):
            await sender(cluster).send(MESSAGE, new_id_each_attempt=is_half_message)
    assert most_ms - 500 < cluster.waits_ms["broker-a"] <= most_ms


LESS_SAFELY = [status for status in SendStatus if status is not SendStatus.SEND_OK]


@pytest.mark.parametrize("status", LESS_SAFELY)
async def test_a_broker_that_stores_half_messages_less_safely_is_avoided(status: SendStatus) -> None:
    cluster = Cluster(A, B)
    cluster.statuses["broker-a"] = status
    sending = sender(cluster)
    results = [await sending.send(MESSAGE, new_id_each_attempt=True) for _ in range(6)]
    assert [result.send_status for result in results].count(status) == 1, "the first turn of broker-a, and no other"
    assert sending.latest.why_failed(asyncio.get_running_loop().time()) is None, "broker-b stored the others"


@pytest.mark.parametrize("status", LESS_SAFELY)
async def test_where_no_broker_stores_half_messages_safely_none_can_be_sent(status: SendStatus) -> None:
    cluster = Cluster(A, B)
    cluster.statuses = {"broker-a": status, "broker-b": status}
    sending = sender(cluster)
    for _ in range(3):
        assert (await sending.send(MESSAGE, new_id_each_attempt=True)).send_status is status
    assert (sending.latest.why_failed(asyncio.get_running_loop().time()) or "").startswith("broker broker-")


@pytest.mark.parametrize("status", [SendStatus.FLUSH_SLAVE_TIMEOUT, SendStatus.SLAVE_NOT_AVAILABLE])
async def test_a_message_without_a_slave_is_stored_and_its_broker_is_not_avoided(status: SendStatus) -> None:
    cluster = Cluster(A, B)
    cluster.statuses["broker-a"] = status
    sending = sender(cluster)
    for _ in range(6):
        await sending.send(MESSAGE)
    assert cluster.tried.count("broker-a") == 3
    assert sending.latest.why_failed(asyncio.get_running_loop().time()) is None
