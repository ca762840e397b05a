import json
from collections.abc import Sequence

from broker.client import ConsumeContext, ConsumeStatus
from broker.message import MessageExt, MessageQueue
from broker.message.record import Record, to_message
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.order_listener import CreditingUnavailable, OrderListener

ORDER = {"order_id": "order-1", "customer": "ada", "total_cents": 2599, "currency": "EUR", "created_at_ms": 1}


class CreditingInMemory:
    """Remembers what it credited; answers what it is told, or CREDITED."""

    def __init__(self, answers: dict[str, CreditOutcome] | None = None, error: CreditingUnavailable | None = None) -> None:
        self.credited: list[Credit] = []
        self._answers, self._error = answers or {}, error

    def credit(self, credits: Sequence[Credit]) -> list[CreditOutcome]:
        if self._error:
            raise self._error
        self.credited += credits
        return [self._answers.get(credit.order_id, CreditOutcome.CREDITED) for credit in credits]


def a_message(body: bytes, queue_offset: int = 0) -> MessageExt:
    properties = f"UNIQ_KEY\x01id-{queue_offset}".encode()
    return to_message(Record(0, 0, 0, 0, queue_offset, 0, 0, 0, bytes(8), 0, bytes(8), 0, 0, body, b"orders", properties))


def an_order(order_id: str, queue_offset: int = 0) -> MessageExt:
    return a_message(json.dumps(ORDER | {"order_id": order_id}).encode(), queue_offset)


def a_context() -> ConsumeContext:
    return ConsumeContext(MessageQueue("orders", "broker-a", 0))


def test_a_batch_is_acknowledged_once_it_is_credited() -> None:
    crediting, context = CreditingInMemory(), a_context()
    assert OrderListener(crediting)([an_order("1", 0), an_order("2", 1)], context) is ConsumeStatus.CONSUME_SUCCESS
    assert [(credit.order_id, credit.message_id, credit.transaction_id) for credit in crediting.credited] == [
        ("1", "id-0", "id-0"),
        ("2", "id-1", "id-1"),
    ]
    assert context.postponed == {}


def test_what_may_not_be_credited_comes_again() -> None:
    listener = OrderListener(CreditingInMemory(error=CreditingUnavailable("Redis is gone")))
    assert listener([an_order("1")], a_context()) is ConsumeStatus.RECONSUME_LATER


def test_a_poison_message_comes_again_alone() -> None:
    crediting, context = CreditingInMemory(), a_context()
    batch = [an_order("1", 10), a_message(b"{", 11), a_message(b'{"order_id": "x"}', 12), an_order("2", 13)]
    assert OrderListener(crediting)(batch, context) is ConsumeStatus.CONSUME_SUCCESS
    assert [credit.order_id for credit in crediting.credited] == ["1", "2"]
    assert context.postponed == {11: None, 12: None}


def test_a_batch_of_poison_troubles_nobody_else() -> None:
    listener, context = OrderListener(CreditingInMemory(error=CreditingUnavailable("not to be asked"))), a_context()
    assert listener([a_message(b"", 5)], context) is ConsumeStatus.CONSUME_SUCCESS
    assert context.postponed == {5: None}


def test_a_message_that_contradicts_the_ledger_goes_to_the_dead_letters_at_once() -> None:
    crediting, context = CreditingInMemory({"2": CreditOutcome.CONFLICTING, "3": CreditOutcome.IMPOSSIBLE}), a_context()
    batch = [an_order("1", 0), an_order("2", 1), an_order("3", 2), an_order("4", 3)]
    assert OrderListener(crediting)(batch, context) is ConsumeStatus.CONSUME_SUCCESS
    assert context.postponed == {1: -1, 2: -1}


def test_a_redelivery_is_acknowledged() -> None:
    crediting, context = CreditingInMemory({"1": CreditOutcome.ALREADY_CREDITED}), a_context()
    assert OrderListener(crediting)([an_order("1")], context) is ConsumeStatus.CONSUME_SUCCESS
    assert context.postponed == {}
