"""Orders that can never be credited, and listeners that fail."""

import math
from typing import cast

import pytest

from credit_service.domain.credit import Credit
from lab.simulation.services.celery_model import FailingOrder, OrderFault
from lab.simulation.services.listener_fault import ListenerFails, ListenerFault
from order_messages.states import EntryKind
from rocketmq_broker.client import ConsumeContext, ConsumeStatus
from rocketmq_broker.message import MessageExt

NO_CONTEXT = cast(ConsumeContext, None)


def entry(order_id: str, kind: EntryKind = EntryKind.CREDIT) -> Credit:
    return Credit(
        order_id=order_id, customer="ana", amount_cents=500, message_id=f"{kind} {order_id}", transaction_id=None, kind=kind
    )


def test_an_order_that_can_never_be_credited_can_be_reversed() -> None:
    failing = FailingOrder(1, math.inf, OrderFault.RAISES, is_written=False)
    assert not failing.is_among([entry("b", EntryKind.REVERSAL)], 1.0)
    assert failing.is_among([entry("a"), entry("b")], 2.0)
    assert not failing.is_among([entry("a", EntryKind.REVERSAL), entry("b")], 1e9)
    assert failing.is_among([entry("a")], 1e9)


def test_an_order_that_fails_for_some_time_cannot_be_reversed_in_this_time() -> None:
    failing = FailingOrder(1, 10.0, OrderFault.RAISES, is_written=False)
    assert failing.is_among([entry("a", EntryKind.REVERSAL)], 9.0)
    assert not failing.is_among([entry("a")], 10.0)


def test_a_listener_fails_during_its_fault_only() -> None:
    calls: list[str] = []

    def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        calls.append("listener")
        return ConsumeStatus.CONSUME_SUCCESS

    fault = ListenerFault()
    failing = fault.around(listen)
    assert failing([], NO_CONTEXT) is ConsumeStatus.CONSUME_SUCCESS
    fault.begin("later", lambda: calls.append("later"))
    assert failing([], NO_CONTEXT) is ConsumeStatus.RECONSUME_LATER
    fault.begin("raises", lambda: calls.append("raises"))
    with pytest.raises(ListenerFails):
        failing([], NO_CONTEXT)
    fault.end()
    assert failing([], NO_CONTEXT) is ConsumeStatus.CONSUME_SUCCESS
    assert calls == ["listener", "later", "raises", "listener"]
