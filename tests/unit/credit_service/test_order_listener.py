from collections.abc import Sequence

import pytest

from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.order_listener import CreditingListener
from rocketmq_broker.client import ConsumeContext, ConsumeStatus, MessagesWithdrawn
from tests.component.credit_service.conftest import a_context, a_message, an_order


class CreditingInMemory:
    """Remembers what it credited; answers what it is told, or CREDITED."""

    def __init__(self, answers: dict[str, CreditOutcome | None] | None = None, error: Exception | None = None) -> None:
        self.credited: list[Credit] = []
        self._answers, self._error = answers or {}, error

    def credit(self, credits: Sequence[Credit], context: ConsumeContext) -> list[CreditOutcome | None]:
        if self._error:
            raise self._error
        self.credited += credits
        return [self._answers.get(credit.order_id, CreditOutcome.CREDITED) for credit in credits]


def test_a_batch_is_acknowledged_once_it_is_credited() -> None:
    crediting, context = CreditingInMemory(), a_context()
    assert CreditingListener(crediting)([an_order("1", 0), an_order("2", 1)], context) is ConsumeStatus.CONSUME_SUCCESS
    assert [(credit.order_id, credit.message_id, credit.transaction_id) for credit in crediting.credited] == [
        ("1", "id-0", "id-0"),
        ("2", "id-1", "id-1"),
    ]
    assert context.postponed == {}


def test_orders_that_are_withdrawn_meanwhile_are_neither_acknowledged_nor_postponed() -> None:
    context = a_context()
    with pytest.raises(MessagesWithdrawn):
        CreditingListener(CreditingInMemory(error=MessagesWithdrawn("the consumer stops")))([an_order("1")], context)
    assert context.postponed == {}


def test_an_order_without_an_outcome_comes_again_later_alone() -> None:
    crediting, context = CreditingInMemory({"2": None}), a_context()
    assert CreditingListener(crediting)([an_order("1", 0), an_order("2", 1)], context) is ConsumeStatus.CONSUME_SUCCESS
    assert context.postponed == {1: None}


def test_messages_that_are_no_orders_go_to_the_dead_letters_at_once_and_trouble_nobody_else() -> None:
    crediting, context = CreditingInMemory(), a_context()
    batch = [an_order("1", 10), a_message(b"{", 11), a_message(b'{"order_id": "x"}', 12), an_order("2", 13)]
    assert CreditingListener(crediting)(batch, context) is ConsumeStatus.CONSUME_SUCCESS
    assert [credit.order_id for credit in crediting.credited] == ["1", "2"]
    assert context.postponed == {11: -1, 12: -1}


def test_a_batch_without_an_order_asks_nobody() -> None:
    listener, context = CreditingListener(CreditingInMemory(error=ZeroDivisionError())), a_context()
    assert listener([a_message(b"", 5)], context) is ConsumeStatus.CONSUME_SUCCESS
    assert context.postponed == {5: -1}


def test_a_message_that_contradicts_the_ledger_goes_to_the_dead_letters_at_once() -> None:
    crediting, context = CreditingInMemory({"2": CreditOutcome.CONFLICTING, "3": CreditOutcome.IMPOSSIBLE}), a_context()
    batch = [an_order("1", 0), an_order("2", 1), an_order("3", 2), an_order("4", 3)]
    assert CreditingListener(crediting)(batch, context) is ConsumeStatus.CONSUME_SUCCESS
    assert context.postponed == {1: -1, 2: -1}


def test_a_redelivery_is_acknowledged() -> None:
    crediting, context = CreditingInMemory({"1": CreditOutcome.ALREADY_CREDITED}), a_context()
    assert CreditingListener(crediting)([an_order("1")], context) is ConsumeStatus.CONSUME_SUCCESS
    assert context.postponed == {}
