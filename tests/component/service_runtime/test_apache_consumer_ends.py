"""How Apache's consumer ends messages where no broker of a test helps: damaged bodies, refusals, ends that get lost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rocketmq_broker.client import ConsumeContext, ConsumeStatus
from rocketmq_broker.message import MessageExt
from service_runtime.messaging.apache_consumer import ApacheConsumer


class ClientByHand:
    """What ApacheConsumer uses of a simple consumer. It fails as it is told, and remembers the ends of messages."""

    consumer_group = "g"
    client_configuration = SimpleNamespace(request_timeout=3)

    def __init__(self) -> None:
        self.ends: list[tuple[str, object]] = []
        self.error: Exception | None = None
        self.rpc_client = self

    def sign(self) -> tuple[()]:
        return ()

    def receive(self, _most: int, _invisible_s: int) -> list[Any]:
        self._fail_or_note("receive", None)
        return []

    def ack(self, message: Any) -> None:
        self._fail_or_note("ack", message.message_id)

    def change_invisible_duration(self, message: Any, seconds: int) -> None:
        handle, message.receipt_handle = message.receipt_handle, ""  # as the client does with a refusal
        self._fail_or_note("hide", (message.message_id, seconds))
        message.receipt_handle = f"{handle}+"

    def forward_message_to_dead_letter_queue_async(self, _at: object, request: Any, **_: object) -> Future[Any]:
        self._fail_or_note("dead letter", request.message_id)
        protocol = import_module("rocketmq.grpc_protocol")
        answered: Future[Any] = Future()
        answered.set_result(SimpleNamespace(status=protocol.Status(code=protocol.Code.OK)))
        return answered

    def _fail_or_note(self, end: str, what: object) -> None:
        if self.error is not None:
            raise self.error
        self.ends.append((end, what))


class RouteByHand:
    """A route that is there."""

    def why_missing(self, _topic: str) -> None:
        return None


def a_received(message_id: str, *, corrupted: bool = False, delivery_attempt: int = 1) -> SimpleNamespace:
    return SimpleNamespace(
        topic="orders", body=b"{}", properties={}, message_id=message_id, tag="created", keys=(), born_timestamp=1, born_host="",
        delivery_attempt=delivery_attempt, receipt_handle="handle", corrupted=corrupted, endpoints=None,
    )  # fmt: skip


class GivenListener:
    """Answers as it is told, and remembers what it got."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.answer: ConsumeStatus | None = ConsumeStatus.CONSUME_SUCCESS

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus | None:
        self.got += [message.message_id for message in messages]
        return self.answer


@pytest.fixture
def listener() -> GivenListener:
    return GivenListener()


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClientByHand:
    monkeypatch.setenv("HOME", str(tmp_path))  # the client writes its log there
    pytest.importorskip("rocketmq", reason="Apache's Python client is not installed")
    return ClientByHand()


@pytest.fixture
def consumer(listener: GivenListener, client: ClientByHand) -> Iterator[ApacheConsumer]:
    made = ApacheConsumer(listener, {"orders": "created"}, group="g", endpoints="127.0.0.1:1", threads=1, max_reconsume_times=2)
    made._client, made._route = client, RouteByHand()  # type: ignore[assignment]
    yield made
    made._stopping.set()


def test_a_damaged_message_is_a_dead_letter_and_its_listener_does_not_see_it(
    consumer: ApacheConsumer, listener: GivenListener, client: ClientByHand
) -> None:
    consumer._consume([a_received("1", corrupted=True), a_received("2")])
    assert (listener.got, client.ends) == (["2"], [("dead letter", "1"), ("ack", "2")])
    consumer._consume([a_received("3", corrupted=True)])
    assert (listener.got, client.ends[2:]) == (["2"], [("dead letter", "3")])


@pytest.mark.parametrize("answer", [None, ConsumeStatus.RECONSUME_LATER])
def test_what_is_not_consumed_comes_again_until_its_last_redelivery(
    consumer: ApacheConsumer, listener: GivenListener, client: ClientByHand, answer: ConsumeStatus | None
) -> None:
    listener.answer = answer
    consumer._consume([a_received("1"), a_received("2", delivery_attempt=2), a_received("3", delivery_attempt=3)])
    assert client.ends == [("hide", ("1", 10)), ("hide", ("2", 20)), ("dead letter", "3")]


def test_an_end_that_does_not_reach_the_broker_is_logged_and_no_error(
    consumer: ApacheConsumer, client: ClientByHand, caplog: pytest.LogCaptureFixture
) -> None:
    client.error = ConnectionError("gone")
    consumer._consume([a_received("1")])
    assert caplog.messages == ["message 1 will be redelivered: its acknowledgement did not reach the broker: gone"]


def test_a_renewal_that_fails_keeps_the_handle(consumer: ApacheConsumer, client: ClientByHand) -> None:
    message = a_received("1")
    client.error = ConnectionError("gone")
    consumer._renew(message)
    assert message.receipt_handle == "handle"
    client.error = None
    consumer._renew(message)
    assert message.receipt_handle == "handle+"


def test_a_refused_poll_is_logged_once_and_makes_it_unready_until_one_is_taken(
    consumer: ApacheConsumer, client: ClientByHand, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service_runtime.messaging.apache_consumer._LOOK_AGAIN_S", 0)
    route = RouteByHand()
    client.error = PermissionError("the account may not consume orders")
    for _ in range(2):
        consumer._receive(route)  # type: ignore[arg-type]
    assert consumer.why_unready() == "the account may not consume orders"
    assert caplog.messages == ["no message can be received: the account may not consume orders"]
    client.error = None
    consumer._receive(route)  # type: ignore[arg-type]
    assert consumer.why_unready() is None
