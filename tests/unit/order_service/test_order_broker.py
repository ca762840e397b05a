"""Tests the order service's broker with a producer whose results the test chooses."""

from collections.abc import Iterator

import pytest

from order_service.adapters import order_broker
from order_service.adapters.order_broker import PRODUCER_GROUP, OrderBroker
from order_service.domain.history import PROPERTY
from order_service.service_layer.attempt import Attempt, Outcome
from order_service.service_layer.placing import order_message
from rocketmq_broker.client import ClientError, EventLoopThread, LocalTransactionState, SendStatus, TransactionSendResult
from rocketmq_broker.message import Message, MessageQueue
from tests.component.order_service.conftest import an_order
from tests.unit.testing.listeners import Transactions


def sent(status: SendStatus) -> TransactionSendResult:
    """Returns the result of a transaction that was rolled back."""
    return TransactionSendResult(
        send_status=status, message_id="", offset_message_id="", queue=MessageQueue("orders", "broker-a", 0), queue_offset=0,
        local_transaction_state=LocalTransactionState.ROLLBACK_MESSAGE,
    )  # fmt: skip


class Producer:
    """The part of a TransactionProducer that OrderBroker uses. Each result is a value, or an error to raise."""

    def __init__(self, group: str, listener: object, *, namesrv_addr: str, send_timeout_ms: int, rpc_hook: object) -> None:
        self.made_with = (group, namesrv_addr, send_timeout_ms, rpc_hook)
        self.sent: list[tuple[Message, object]] = []
        self.events: list[str] = []
        self.answer: object = sent(SendStatus.SEND_OK)

    async def start(self) -> None:
        self.events.append("started")

    async def shutdown(self) -> None:
        self.events.append("shut down")
        self._answer()

    async def send_message_in_transaction(self, message: Message, arg: object) -> object:
        self.sent.append((message, arg))
        return self._answer()

    async def why_unsendable(self, topic: str) -> object:
        return self._answer()

    async def refusing_brokers(self, topic: str) -> object:
        return self._answer()

    async def count_discarded(self) -> object:
        return self._answer()

    def _answer(self) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[OrderBroker]:
    monkeypatch.setattr(order_broker, "TransactionProducer", Producer)
    made = OrderBroker(
        Transactions(), namesrv_addr="127.0.0.1:1", send_timeout_ms=3000, loop=EventLoopThread(), witness=lambda: "the witness"
    )
    made.start()
    yield made
    made.stop()


@pytest.fixture
def producer(broker: OrderBroker) -> Producer:
    found = broker._producer
    assert isinstance(found, Producer)
    return found


def test_it_joins_the_group_of_all_order_services(producer: Producer) -> None:
    assert producer.made_with == (PRODUCER_GROUP, "127.0.0.1:1", 3000, None)
    assert producer.events == ["started"]


def test_an_order_is_sent_with_its_attempt_and_the_witness(broker: OrderBroker, producer: Producer) -> None:
    order = an_order()
    attempt = Attempt(order)
    broker.send_in_transaction(order_message(order), attempt)
    assert producer.sent == [(order_message(order).with_properties({PROPERTY: "the witness"}), attempt)]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ClientError("no route"), "the half message could not be sent: no route"),
        (sent(SendStatus.SLAVE_NOT_AVAILABLE), "broker broker-a: SLAVE_NOT_AVAILABLE; rolled back"),
    ],
)
def test_a_half_message_that_was_not_stored_safely_is_no_order(
    broker: OrderBroker, producer: Producer, caplog: pytest.LogCaptureFixture, answer: object, said: str
) -> None:
    producer.answer = answer
    order = an_order()
    assert broker.send_in_transaction(order_message(order), Attempt(order)) is Outcome.NOT_STARTED
    assert caplog.messages == [f"order order-1: {said}"]


@pytest.mark.parametrize("error", [ClientError("gone"), TimeoutError()])
@pytest.mark.parametrize("outcome", [Outcome.RUNNING, Outcome.STORED])
def test_a_broker_that_goes_away_meanwhile_does_not_change_the_outcome(
    broker: OrderBroker, producer: Producer, error: Exception, outcome: Outcome
) -> None:
    producer.answer = error
    order = an_order()
    attempt = Attempt(order)
    attempt.begin("transaction-1")
    if outcome is not Outcome.RUNNING:
        attempt.conclude(outcome)
    assert broker.send_in_transaction(order_message(order), attempt) is outcome


def test_a_local_transaction_that_did_not_start_within_the_wait_has_an_unknown_outcome(
    broker: OrderBroker, producer: Producer
) -> None:
    producer.answer = TimeoutError()
    order = an_order()
    assert broker.send_in_transaction(order_message(order), Attempt(order)) is Outcome.UNKNOWN


@pytest.mark.parametrize("error", [ClientError("gone"), TimeoutError()])
def test_a_broker_that_does_not_answer_is_no_error_of_a_health_check(
    broker: OrderBroker, producer: Producer, error: Exception
) -> None:
    producer.answer = error
    assert broker.why_unready() == str(error)
    assert broker.refusing_brokers() == []
    assert broker.count_discarded() is None


def test_a_health_check_passes_on_what_the_producer_says(broker: OrderBroker, producer: Producer) -> None:
    producer.answer = "its disk is full"
    assert broker.why_unready() == "its disk is full"
    producer.answer = ["broker broker-b stores nothing: timeout"]
    assert broker.refusing_brokers() == ["broker broker-b stores nothing: timeout"]
    producer.answer = 2
    assert broker.count_discarded() == 2


def test_a_goodbye_that_the_broker_does_not_take_is_logged_and_no_error(
    broker: OrderBroker, producer: Producer, caplog: pytest.LogCaptureFixture
) -> None:
    producer.answer = ClientError("gone")
    broker.stop()
    assert producer.events == ["started", "shut down"]
    assert caplog.messages == ["the producer did not shut down cleanly: gone"]
