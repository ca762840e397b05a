"""The shadow model accepts every response that an honest order service can give, and refuses all others."""

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.simulation.judges.order_shadow import ShadowState
from lab.simulation.judges.shadow import AnswerKind, Content, CustomerAnswer, CustomerRequest, RequestKind, SentRequest, Shadow
from lab.simulation.judges.violation import Promise
from order_messages.states import OrderState
from order_service.domain.life_cycle import OrderEvent, next_state

LIMIT = 1_000
PLACE, PAY, CANCEL, READ = RequestKind.PLACE, RequestKind.PAY, RequestKind.CANCEL, RequestKind.READ
DONE, UNKNOWN, REFUSED, LOST = AnswerKind.DONE, AnswerKind.UNKNOWN, AnswerKind.REFUSED, AnswerKind.LOST
NOT_FOUND, UNAVAILABLE, KEY_REUSED = AnswerKind.NOT_FOUND, AnswerKind.UNAVAILABLE, AnswerKind.KEY_REUSED
PLACED, AWAITING, PAID = ShadowState.PLACED, ShadowState.AWAITING_PAYMENT, ShadowState.PAID
CANCELLED, EXPIRED = ShadowState.CANCELLED, ShadowState.EXPIRED


class Ada:
    """A customer who waits for each response before the next request."""

    def __init__(self) -> None:
        self.shadow = Shadow(LIMIT)

    def place(self, kind: AnswerKind, order_id: str | None = None, *, replay: bool = False, **asked: Any) -> bool:
        """Places an order with the key `k`. Returns whether the shadow accepts the response."""
        request = CustomerRequest("ada", PLACE, **{"idempotency_key": "k", "total_cents": 500, **asked})
        return self._fits(request, CustomerAnswer(kind, order_id, is_replay=replay))

    def asks(self, kind: RequestKind, answer: AnswerKind, state: ShadowState | None = None, order_id: str = "o") -> bool:
        return self._fits(CustomerRequest("ada", kind, order_id), CustomerAnswer(answer, order_id, state))

    def ends(self, **states: str) -> list[Promise]:
        rows = [{"order_id": it, "customer": "ada", "idempotency_key": "k", "state": state} for it, state in states.items()]
        return [Promise(one.promise) for one in self.shadow.judge_end(rows)]

    def _fits(self, request: CustomerRequest, answer: CustomerAnswer) -> bool:
        found = self.shadow.answer(self.shadow.send(request), answer)
        assert {one.promise for one in found} <= {Promise.ANSWERS_FIT}
        return not found


@pytest.fixture
def ada() -> Ada:
    return Ada()


def test_a_placed_order_is_found_again(ada: Ada) -> None:
    assert ada.place(DONE, "o")
    assert ada.asks(READ, DONE, PLACED)
    assert ada.place(DONE, "o", replay=True)
    assert ada.asks(CANCEL, DONE, CANCELLED)
    assert ada.asks(READ, DONE, CANCELLED)
    assert ada.shadow.told == {"o": "ada"}
    assert ada.ends(o="CANCELLED") == []


def test_a_placed_order_is_not_placed_again(ada: Ada) -> None:
    ada.place(DONE, "o")
    assert not ada.place(DONE, "p")


def test_one_key_has_one_order(ada: Ada) -> None:
    ada.place(UNKNOWN, "o")
    assert ada.place(DONE, "p")
    assert not ada.asks(READ, DONE, PLACED, order_id="o")


def test_a_placed_order_is_found(ada: Ada) -> None:
    ada.place(DONE, "o")
    assert not ada.asks(READ, NOT_FOUND)
    assert ada.ends() == [Promise.TOLD_ORDER_IS_KEPT]


@pytest.mark.parametrize("kind", [LOST, UNKNOWN])
def test_after_an_unknown_answer_the_order_may_be_there_or_not(kind: AnswerKind) -> None:
    for answer in ((DONE, False), (DONE, True)):
        ada = Ada()
        ada.place(kind, "o" if kind is UNKNOWN else None)
        assert ada.place(answer[0], "o", replay=answer[1])
    for end in ({}, {"o": "PLACED"}, {"o": "CANCELLED"}):
        ada = Ada()
        ada.place(kind, "o" if kind is UNKNOWN else None)
        assert ada.ends(**end) == []


def test_an_order_whose_answer_was_unknown_may_appear_after_it_was_not_found(ada: Ada) -> None:
    ada.place(UNKNOWN, "o")
    assert ada.asks(READ, NOT_FOUND)
    assert ada.asks(READ, DONE, PLACED)
    assert not ada.asks(READ, NOT_FOUND)


def test_nothing_is_written_after_the_service_was_unavailable(ada: Ada) -> None:
    ada.place(UNAVAILABLE)
    assert not ada.place(DONE, "o", replay=True)
    again = Ada()
    again.place(UNAVAILABLE)
    assert again.ends(o="PLACED") == [Promise.ANSWERS_FIT]


def test_a_total_above_the_limit_is_refused_and_no_other(ada: Ada) -> None:
    assert ada.place(REFUSED, total_cents=LIMIT + 1)
    assert not ada.place(REFUSED)
    assert not ada.place(DONE, "o", total_cents=LIMIT + 1)


def test_a_key_is_reused_only_by_another_request(ada: Ada) -> None:
    ada.place(DONE, "o")
    assert not ada.place(KEY_REUSED)
    assert ada.place(KEY_REUSED, total_cents=7)


@pytest.mark.parametrize(
    ("kind", "answer", "state", "fits"),
    [
        (PAY, DONE, PAID, True), (PAY, REFUSED, EXPIRED, True), (PAY, REFUSED, PLACED, False), (PAY, NOT_FOUND, None, False),
        (CANCEL, DONE, CANCELLED, True), (CANCEL, REFUSED, EXPIRED, True), (CANCEL, REFUSED, PAID, False),
        (READ, DONE, AWAITING, True), (READ, DONE, EXPIRED, True), (READ, DONE, PAID, False), (READ, DONE, PLACED, False),
        (PAY, KEY_REUSED, None, False), (PAY, UNAVAILABLE, None, True),
    ],
)  # fmt: skip
def test_an_order_that_awaits_its_payment(
    ada: Ada, kind: RequestKind, answer: AnswerKind, state: ShadowState | None, fits: bool
) -> None:
    ada.place(DONE, "o", is_paid_later=True)
    assert ada.asks(kind, answer, state) is fits


@pytest.mark.parametrize("kind", [LOST, UNKNOWN, UNAVAILABLE])
def test_a_payment_whose_answer_is_unknown_may_be_made_later(ada: Ada, kind: AnswerKind) -> None:
    ada.place(DONE, "o", is_paid_later=True)
    ada.asks(PAY, kind)
    assert ada.asks(READ, DONE, AWAITING)
    assert ada.asks(READ, DONE, PAID)
    assert not ada.asks(READ, DONE, AWAITING)


def test_an_order_that_ended_stays_as_it_is(ada: Ada) -> None:
    ada.place(DONE, "o")
    ada.asks(CANCEL, DONE, CANCELLED)
    assert not ada.asks(READ, DONE, PLACED)
    again = Ada()
    again.place(DONE, "o")
    again.asks(CANCEL, DONE, CANCELLED)
    assert again.ends(o="PLACED") == [Promise.ANSWERS_FIT]


def test_an_answer_that_comes_late_may_tell_of_the_time_before(ada: Ada) -> None:
    ada.place(DONE, "o")
    reading = ada.shadow.send(CustomerRequest("ada", READ, "o"))
    assert ada.asks(CANCEL, DONE, CANCELLED)
    assert ada.shadow.answer(reading, CustomerAnswer(DONE, "o", PLACED)) == []
    assert ada.asks(READ, DONE, CANCELLED)
    assert not ada.asks(READ, DONE, PLACED)


def test_two_orders_for_one_key_and_orders_from_nowhere_are_found(ada: Ada) -> None:
    ada.place(LOST)
    ada.place(LOST)
    assert ada.ends(o="PLACED", p="PLACED") == [Promise.ANSWERS_FIT]
    assert Ada().ends(o="PLACED") == [Promise.ANSWERS_FIT]


@dataclass
class HonestService:
    """An order service that keeps its promises to one customer with a few keys. Its responses may arrive late or never."""

    chance: random.Random
    orders: dict[str, ShadowState] = field(default_factory=dict)
    by_key: dict[str | None, tuple[str, Content]] = field(default_factory=dict)

    def does(self, request: CustomerRequest) -> CustomerAnswer:
        if request.kind is PLACE:
            return self._place(request)
        state = self.orders.get(request.order_id or "")
        if state is None:
            return CustomerAnswer(NOT_FOUND, request.order_id)
        event = {PAY: OrderEvent.PAY, CANCEL: OrderEvent.CANCEL}.get(request.kind)
        if event is not None:
            after = next_state(OrderState(state), event)
            if after is None and state is not {PAY: PAID, CANCEL: CANCELLED}[request.kind]:
                return CustomerAnswer(REFUSED, request.order_id, state)
            state = ShadowState(after) if after else state
            self.orders[request.order_id or ""] = state
        return CustomerAnswer(DONE, request.order_id, state)

    def passes_time(self) -> None:
        """Ends an order without a request, for example by expiry."""
        if self.orders:
            order_id = self.chance.choice(sorted(self.orders))
            after = next_state(OrderState(self.orders[order_id]), self.chance.choice([OrderEvent.EXPIRE, OrderEvent.CANCEL]))
            self.orders[order_id] = ShadowState(after) if after else self.orders[order_id]

    def _place(self, request: CustomerRequest) -> CustomerAnswer:
        known = self.by_key.get(request.idempotency_key) if request.idempotency_key is not None else None
        if known is not None:
            order_id, content = known
            if content != request.content:
                return CustomerAnswer(KEY_REUSED)
            return CustomerAnswer(DONE, order_id, self.orders[order_id], is_replay=True)
        if request.total_cents > LIMIT:
            return CustomerAnswer(REFUSED)
        order_id = f"o-{len(self.orders)}"
        self.orders[order_id] = AWAITING if request.is_paid_later else PLACED
        if request.idempotency_key is not None:
            self.by_key[request.idempotency_key] = order_id, request.content
        return CustomerAnswer(DONE, order_id, self.orders[order_id])


@dataclass
class Underway:
    """A request on its way to the service, and its response on the way back."""

    sent: SentRequest
    answer: CustomerAnswer | None = None


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.randoms(use_true_random=False))
def test_an_honest_service_is_never_accused(chance: random.Random) -> None:
    """The shadow model accepts all responses of an honest service, even if they overlap, arrive late or are lost."""
    service, shadow = HonestService(chance), Shadow(LIMIT)
    underway: list[Underway] = []
    found = []
    for _ in range(40):
        deed = chance.choice(["send", "send", "arrive", "arrive", "answer", "answer", "lose", "time"])
        if deed == "send":
            underway.append(Underway(shadow.send(wish(chance, sorted(shadow.told)))))
        elif deed == "time":
            service.passes_time()
        elif underway:
            one = chance.choice(underway)
            if deed == "arrive" and one.answer is None:
                one.answer = service.does(one.sent.request)
            elif deed == "answer" and one.answer is not None:
                found += shadow.answer(one.sent, one.answer)
                underway.remove(one)
            elif deed == "lose" and chance.random() < 0.3:
                found += shadow.answer(one.sent, CustomerAnswer(LOST))
                if one.answer is not None or chance.random() < 0.5:
                    underway.remove(one)
                else:
                    service.does(one.sent.request)
                    underway.remove(one)
    rows = [
        {"order_id": it, "customer": "ada", "idempotency_key": key_of(service, it), "state": str(state)}
        for it, state in service.orders.items()
    ]
    assert [*found, *shadow.judge_end(rows)] == []


def key_of(service: HonestService, order_id: str) -> str | None:
    return next((key for key, (known, _) in service.by_key.items() if known == order_id), None)


def wish(chance: random.Random, known: list[str]) -> CustomerRequest:
    if known and chance.random() < 0.6:
        return CustomerRequest("ada", chance.choice([PAY, CANCEL, READ]), chance.choice(known))
    total_cents = chance.choice([500, 500, 700, LIMIT + 1])
    key = chance.choice([None, "k", "l"])
    return CustomerRequest("ada", PLACE, None, key, total_cents, is_paid_later=chance.random() < 0.4)
