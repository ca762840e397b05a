"""The shadow model: a small model of the order service that predicts the possible responses to a customer's request."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lab.simulation.judges.order_shadow import EXISTING, Effect, OpenRequest, OrderShadow, ShadowState
from lab.simulation.judges.violation import Promise, Violation
from order_service.domain.life_cycle import OrderEvent
from pipelines.judging.without_spark.in_sqlite import Row

Content = tuple[int, bool]


class RequestKind(StrEnum):
    """The kind of a customer's request."""

    PLACE = "place"
    PAY = "pay"
    CANCEL = "cancel"
    READ = "read"


class AnswerKind(StrEnum):
    """The kind of a response."""

    DONE = "done"
    """201 or 200: the request was carried out now or before, or the order was read."""
    UNKNOWN = "unknown"
    """202: the outcome is unknown."""
    REFUSED = "refused"
    """409: a rule or the order's state forbids it."""
    KEY_REUSED = "key reused"
    """422: the idempotency key belongs to another request."""
    NOT_FOUND = "not found"
    """404: no order has this id."""
    UNREACHED = "unreached"
    """No process listened: the request has no effect."""
    UNAVAILABLE = "unavailable"
    """503 and similar. A new order was not written and will not be."""
    LOST = "lost"
    """No answer arrived, so the outcome is unknown."""


@dataclass(frozen=True, slots=True)
class CustomerRequest:
    """A customer's request. It contains the order id of an earlier response, or the fields of a new order."""

    customer: str
    kind: RequestKind
    order_id: str | None = None
    idempotency_key: str | None = None
    total_cents: int = 0
    is_paid_later: bool = False

    @property
    def effect(self) -> Effect:
        """The effect that the request may have on the order."""
        if self.kind is RequestKind.PLACE:
            return Effect(places=ShadowState.AWAITING_PAYMENT if self.is_paid_later else ShadowState.PLACED)
        return _EFFECTS[self.kind]

    @property
    def content(self) -> Content:
        """The content that must be equal in a repeated request with the same key."""
        return self.total_cents, self.is_paid_later


@dataclass(frozen=True, slots=True)
class CustomerAnswer:
    """A response to a customer. It contains the order's id and state if the service sent them."""

    kind: AnswerKind
    order_id: str | None = None
    state: ShadowState | None = None
    is_replay: bool = False
    """True if the order was placed by an earlier request with the same key."""


_EFFECTS: Final = {
    RequestKind.PAY: Effect(event=OrderEvent.PAY),
    RequestKind.CANCEL: Effect(event=OrderEvent.CANCEL),
    RequestKind.READ: Effect(),
}
_DONE_AS: Final = {
    RequestKind.PAY: frozenset({ShadowState.PAID}),
    RequestKind.CANCEL: frozenset({ShadowState.CANCELLED}),
    RequestKind.READ: EXISTING,
}
_REFUSED_AS: Final = {
    RequestKind.PAY: frozenset({ShadowState.PLACED, ShadowState.CANCELLED, ShadowState.EXPIRED}),
    RequestKind.CANCEL: frozenset({ShadowState.EXPIRED}),
    RequestKind.READ: frozenset[ShadowState](),
}
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class SentRequest:
    """A request that has no response yet."""

    request: CustomerRequest
    shadow: OrderShadow
    open: OpenRequest
    contents: set[Content]
    """The contents of all requests with its idempotency key, including this one."""


class Shadow:
    """The shadow model of all customers of a simulation. Each request is sent once, and has at most one response."""

    def __init__(self, order_limit_cents: int) -> None:
        """Creates the model without requests. `order_limit_cents` is the maximum total of an order."""
        self._limit_cents = order_limit_cents
        self._by_key: dict[_Key, OrderShadow] = {}
        self._contents: dict[_Key, set[Content]] = {}
        self._by_id: dict[str, OrderShadow] = {}
        self._shadows: list[tuple[str, OrderShadow]] = []
        self.told: dict[str, str] = {}
        """Maps each order id that was confirmed to a customer to that customer."""

    def send(self, request: CustomerRequest) -> SentRequest:
        """Adds a request when its customer sends it. A request without a response may still take effect."""
        shadow = self._shadow_of(request)
        contents = {request.content}
        if request.kind is RequestKind.PLACE and request.idempotency_key is not None:
            contents = self._contents.setdefault((request.customer, request.idempotency_key), set())
            contents.add(request.content)
        effect = request.effect if not self._is_above_limit(request) else Effect()
        return SentRequest(request, shadow, shadow.send(effect), contents)

    def answer(self, sent: SentRequest, answer: CustomerAnswer) -> list[Violation]:
        """Updates the shadow with the response to a request. Returns a violation if the response is not allowed."""
        if answer.kind is AnswerKind.LOST:
            sent.shadow.fall_silent(sent.open)
            return []
        known = sorted(sent.shadow.states)
        problem = self._place(sent, answer) if sent.request.kind is RequestKind.PLACE else self._change(sent, answer)
        if problem is None:
            return []
        request = sent.request
        keys = tuple(key for key in (answer.order_id or request.order_id, request.idempotency_key, request.customer) if key)
        state = "" if answer.state is None else f", {answer.state}"
        told = f"{request.customer} asks to {request.kind} and is told {answer.kind}{state}: {problem}"
        return [Violation(Promise.ANSWERS_FIT, f"{told}; the order may be {', '.join(known)}", keys)]

    def judge_end(self, orders: Iterable[Row]) -> list[Violation]:
        """Compares the rows of all orders with the shadows. Call this method after all requests have ended."""
        rows = {row["order_id"]: row for row in orders}
        found: list[Violation] = []
        for customer, shadow in self._shadows:
            found += _end_of(customer, shadow, self._rows_of(customer, shadow, rows))
        text = "there is an order, and no customer asked for it"
        return found + [Violation(Promise.ANSWERS_FIT, text, (order_id,)) for order_id in self._strangers(rows)]

    def _rows_of(self, customer: str, shadow: OrderShadow, rows: dict[str, Row]) -> dict[str, str]:
        """Removes the rows with the order id or the key of the shadow. Returns the states of these rows."""
        keys = {key for (of, key), one in self._by_key.items() if one is shadow and of == customer}
        named = {
            order_id
            for order_id, row in rows.items()
            if order_id in shadow.candidates or (row["customer"] == customer and row["idempotency_key"] in keys)
        }
        return {order_id: rows.pop(order_id)["state"] for order_id in sorted(named)}

    def _strangers(self, rows: Mapping[str, Row]) -> list[str]:
        """Returns the rows that no request explains. Each request without a key and without a response explains one row."""
        unnamed = [(customer, shadow) for customer, shadow in self._shadows if not shadow.order_id and shadow.places]
        taken: dict[int, str] = {}

        def finds_place(order_id: str, tried: set[int]) -> bool:
            row = rows[order_id]
            for number, (customer, shadow) in enumerate(unnamed):
                if number in tried or row["customer"] != customer or row["state"] not in shadow.states:
                    continue
                tried.add(number)
                if number not in taken or finds_place(taken[number], tried):
                    taken[number] = order_id
                    return True
            return False

        return [order_id for order_id, row in sorted(rows.items()) if row["idempotency_key"] or not finds_place(order_id, set())]

    def _shadow_of(self, request: CustomerRequest) -> OrderShadow:
        if request.kind is not RequestKind.PLACE:
            return self._by_id[request.order_id or ""]
        key = None if request.idempotency_key is None else (request.customer, request.idempotency_key)
        if key is not None and key in self._by_key:
            return self._by_key[key]
        shadow = OrderShadow()
        self._shadows.append((request.customer, shadow))
        if key is not None:
            self._by_key[key] = shadow
        return shadow

    def _is_above_limit(self, request: CustomerRequest) -> bool:
        return request.kind is RequestKind.PLACE and request.total_cents > self._limit_cents

    def _place(self, sent: SentRequest, answer: CustomerAnswer) -> str | None:
        """Applies the response to a request that places an order.

        Returns the reason if the response is impossible, otherwise None.
        """
        shadow, request = sent.shadow, sent.request
        may_be_absent = ShadowState.ABSENT in sent.open.seen
        if answer.kind is AnswerKind.DONE:
            return self._placed(sent, answer)
        if answer.kind is AnswerKind.UNKNOWN:
            shadow.fall_silent(sent.open)
            if answer.order_id is not None:
                shadow.candidates.add(answer.order_id)
                self._by_id[answer.order_id] = shadow
            return None if may_be_absent else "the order was placed before"
        shadow.never_happened(sent.open)
        if answer.kind is AnswerKind.REFUSED:
            if not self._is_above_limit(request):
                return "its total is within the limit"
            return None if may_be_absent else "the order was placed before"
        if answer.kind is AnswerKind.KEY_REUSED:
            return None if len(sent.contents) > 1 and shadow.states & EXISTING else "nobody used the key for anything else"
        return "nobody asked for an order by its id" if answer.kind is AnswerKind.NOT_FOUND else None

    def _placed(self, sent: SentRequest, answer: CustomerAnswer) -> str | None:
        shadow, request = sent.shadow, sent.request
        may_be_absent = ShadowState.ABSENT in sent.open.seen
        begins = frozenset({request.effect.places}) if request.effect.places else EXISTING
        said = frozenset({answer.state}) if answer.state is not None else EXISTING if answer.is_replay else begins
        is_above_limit = self._is_above_limit(request)
        fits = shadow.happened(sent.open, said)
        problem = self._is_named(shadow, answer.order_id, request.customer)
        if problem is not None:
            return problem
        if not answer.is_replay and is_above_limit:
            return "its total exceeds the limit"
        if not answer.is_replay and not may_be_absent:
            return "the order was placed before, and is placed again"
        if answer.is_replay and not sent.open.before & EXISTING and not sent.open.has_rival:
            return "no earlier request placed it"
        return None if fits else "it cannot be in this state"

    def _is_named(self, shadow: OrderShadow, order_id: str | None, customer: str) -> str | None:
        """Stores the id that a response gave for an existing order. Returns a problem if an earlier response gave another id."""
        if order_id is None:
            return None
        self._by_id[order_id] = shadow
        self.told[order_id] = customer
        shadow.candidates.add(order_id)
        if shadow.order_id not in (None, order_id):
            return f"it was {shadow.order_id} before, and is {order_id} now"
        shadow.order_id = order_id
        return None

    def _change(self, sent: SentRequest, answer: CustomerAnswer) -> str | None:
        """Applies the response to a payment, a cancellation or a read.

        Returns the reason if the response is impossible, otherwise None.
        """
        shadow, kind = sent.shadow, sent.request.kind
        if answer.kind in (AnswerKind.UNKNOWN, AnswerKind.UNAVAILABLE):
            # The database may have stored it and lost the answer: only a later answer shows it.
            shadow.fall_silent(sent.open)
            return None
        if answer.kind is AnswerKind.UNREACHED:
            shadow.never_happened(sent.open)
            return None
        if answer.kind is AnswerKind.NOT_FOUND:
            may_be_absent = ShadowState.ABSENT in sent.open.seen or shadow.order_id not in (None, sent.request.order_id)
            shadow.never_happened(sent.open)
            return None if may_be_absent else "the order exists"
        if answer.kind is AnswerKind.KEY_REUSED:
            shadow.never_happened(sent.open)
            return "the request names no key"
        allowed = _DONE_AS[kind] if answer.kind is AnswerKind.DONE else _REFUSED_AS[kind]
        said = allowed if answer.state is None else allowed & {answer.state}
        fits = shadow.happened(sent.open, said)
        problem = self._is_named(shadow, sent.request.order_id, sent.request.customer)
        return problem or (None if fits else "it cannot be in this state")


def _end_of(customer: str, shadow: OrderShadow, found: Mapping[str, str]) -> Iterator[Violation]:
    """Yields the differences between a shadow and the states in the rows of its order."""
    may_be = ", ".join(sorted(shadow.states))
    if len(found) > 1:
        yield Violation(Promise.ANSWERS_FIT, f"{customer} asked for one order, and there are {len(found)}", tuple(found))
    elif not found and ShadowState.ABSENT not in shadow.states:
        text = f"{customer} was told of an order that is nowhere; it may be {may_be}"
        yield Violation(Promise.TOLD_ORDER_IS_KEPT, text, tuple(sorted(shadow.candidates)))
    for order_id, state in found.items():
        if state not in shadow.states:
            yield Violation(Promise.ANSWERS_FIT, f"the order of {customer} is {state}; it may be {may_be}", (order_id,))
