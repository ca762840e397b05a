"""Tests waiting pop requests and the limits on their number."""

from dataclasses import replace

import pytest

from rocketmq_broker.server.clients.message_filters import MessageFilter
from rocketmq_broker.server.popping import waiting_pops
from rocketmq_broker.server.popping.errors import TooManyPops
from rocketmq_broker.server.popping.waiting_pops import PopRequest, WaitingPop, WaitingPops

REQUEST = PopRequest(
    group="credits", topic="orders", queue_id=-1, max_messages=1, invisible_ms=1000, message_filter=MessageFilter(None)
)


def waiting(deadline_ms: int = 100, owner: object = None) -> WaitingPop:
    return WaitingPop(REQUEST, (b"orders", b"%RETRY%credits_orders"), deadline_ms, lambda popped: None, owner)


def test_a_pop_waits_for_each_of_its_topics_until_it_is_removed() -> None:
    pops = WaitingPops()
    pops.hold(first := waiting())
    pops.hold(second := waiting())
    assert pops.of(b"orders") == pops.of(b"%RETRY%credits_orders") == [first, second]
    pops.remove(first)
    pops.remove(first)
    assert (pops.of(b"orders"), pops.count) == ([second], 1)
    pops.remove(second)
    assert not pops.has(b"orders")


def test_a_pop_ends_at_its_deadline() -> None:
    pops = WaitingPops()
    pops.hold(late := waiting(200))
    pops.hold(early := waiting(100))
    assert pops.next_due_ms() == 100
    assert (pops.take_due(99), pops.take_due(150), pops.take_due(250)) == ([], [early], [late])
    assert pops.next_due_ms() is None


def test_the_pops_of_an_owner_are_forgotten_together() -> None:
    pops = WaitingPops()
    owner = object()
    for _ in range(3):
        pops.hold(waiting(owner=owner))
    pops.hold(other := waiting())
    pops.forget(owner)
    assert pops.of(b"orders") == [other]


def test_an_owner_can_have_only_so_many_pops_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_pops, "MAX_OF_AN_OWNER", 2)
    pops = WaitingPops()
    owner = object()
    for _ in range(2):
        pops.hold(waiting(owner=owner))
    with pytest.raises(TooManyPops, match="too many waiting pops: 2 from this client, 2 from all clients"):
        pops.hold(waiting(owner=owner))
    pops.hold(waiting(owner=object()))


def test_a_client_with_few_pops_waits_though_others_fill_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_pops, "MAX_WAITING", 100)
    pops, greedy, owner = WaitingPops(), object(), object()
    for _ in range(100):
        pops.hold(waiting(owner=greedy))
    with pytest.raises(TooManyPops, match="too many waiting pops: 100 from this client, 100 from all clients"):
        pops.hold(waiting(owner=greedy))
    for _ in range(32):
        pops.hold(waiting(owner=owner))
    with pytest.raises(TooManyPops):
        pops.hold(waiting(owner=owner))


def test_the_expressions_of_a_clients_waiting_pops_have_a_bound() -> None:
    tags = MessageFilter(frozenset(range(13_000)))
    pops, owner = WaitingPops(), object()
    held = [replace(waiting(owner=owner), request=replace(REQUEST, message_filter=tags)) for _ in range(5)]
    for pop in held[:4]:
        pops.hold(pop)
    with pytest.raises(TooManyPops, match="exceed 1048576 characters"):
        pops.hold(held[4])
    pops.hold(waiting(owner=owner))
    pops.remove(held[0])
    pops.hold(held[4])
    pops.forget(owner)
    assert not pops._expression_lengths
