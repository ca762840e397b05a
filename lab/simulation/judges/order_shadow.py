"""Tracks the shadow of an order, which is the set of its possible states, given its customer's requests and the responses.

The state can be uncertain, because responses may be lost. Unanswered requests and events without a request add possible states.
Responses remove possible states.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from order_messages.states import OrderState
from order_service.domain.life_cycle import OrderEvent, next_state


class ShadowState(StrEnum):
    """A possible state of an order. ABSENT means that the order does not exist."""

    ABSENT = "ABSENT"
    PLACED = OrderState.PLACED.value
    AWAITING_PAYMENT = OrderState.AWAITING_PAYMENT.value
    PAID = OrderState.PAID.value
    CANCELLED = OrderState.CANCELLED.value
    EXPIRED = OrderState.EXPIRED.value


States = frozenset[ShadowState]
EXISTING: Final[States] = frozenset(ShadowState) - {ShadowState.ABSENT}
_BY_ITSELF: Final = (OrderEvent.EXPIRE, OrderEvent.CANCEL)
"""The events that occur without a customer's request: the payment deadline passes, stock is short, or the credit is refused."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a request: it places the order in a state, or it triggers an event.

    A request that only reads has no effect.
    """

    places: ShadowState | None = None
    event: OrderEvent | None = None

    def on(self, state: ShadowState) -> ShadowState | None:
        """Returns the order's state after the request. Returns None if the request has no effect in this state."""
        if state is ShadowState.ABSENT:
            return self.places
        after = None if self.event is None else next_state(OrderState(state), self.event)
        return None if after is None else ShadowState(after)


@dataclass(slots=True, eq=False)
class OpenRequest:
    """A request that may still take effect."""

    effect: Effect
    before: States
    """The order's possible states before the request was sent."""
    seen: States
    """All possible states of the order since the request was sent."""
    is_alone: bool = True
    """True if no other request for this order has been open since the request was sent."""
    has_rival: bool = False
    """True if another request may have placed the order since the request was sent."""
    is_silent: bool = False
    """True if the request will never be answered."""


@dataclass(slots=True)
class OrderShadow:
    """The possible states of an order, its open requests, and its known or possible ids."""

    states: States = frozenset({ShadowState.ABSENT})
    open: list[OpenRequest] = field(default_factory=list)
    order_id: str | None = None
    """The id under which the order certainly exists."""
    candidates: set[str] = field(default_factory=set)
    """The ids under which the order may exist."""

    def send(self, effect: Effect) -> OpenRequest:
        """Adds a request in flight. It may take effect now, later or never."""
        self._disturb()
        is_alone = all(other.is_silent for other in self.open)
        request = OpenRequest(effect, self.states, self.states, is_alone, self.places)
        for other in self.open:
            other.has_rival |= effect.places is not None
        self.open.append(request)
        self._become(self.states)
        return request

    def fall_silent(self, request: OpenRequest) -> None:
        """Marks a request as one to which no response will come. It may take effect at any later time."""
        request.is_silent = True
        if request.effect == Effect():
            self.open.remove(request)

    def never_happened(self, request: OpenRequest) -> None:
        """Marks a request as one that had no effect and will have none."""
        self.open.remove(request)
        self._become(request.before if request.is_alone else self.states)
        self._disturb()

    def happened(self, request: OpenRequest, said: Collection[ShadowState]) -> bool:
        """Applies a response that reports one of these states of the order. Returns True if the response is possible."""
        self.open.remove(request)
        fitting = request.seen & frozenset(said)
        if request.is_alone:
            self._become(fitting or frozenset(said))
        else:
            self._become((self.states & _reachable(fitting)) or frozenset(said))
        self._disturb()
        return bool(fitting)

    @property
    def places(self) -> bool:
        """True if an open request may still place the order."""
        return any(request.effect.places is not None for request in self.open)

    def _disturb(self) -> None:
        for other in self.open:
            other.is_alone = False

    def _become(self, states: Iterable[ShadowState]) -> None:
        self.states = _closure(states, [request.effect for request in self.open])
        for request in self.open:
            request.seen |= self.states


def _closure(states: Iterable[ShadowState], effects: Collection[Effect]) -> States:
    """Returns the states, and all states that can be reached from them through these effects or without a request."""
    found: set[ShadowState] = set()
    left = list(states)
    moves = [*effects, *(Effect(event=event) for event in _BY_ITSELF)]
    while left:
        state = left.pop()
        found.add(state)
        left += [after for move in moves if (after := move.on(state)) is not None and after not in found]
    return frozenset(found)


def _reachable(states: Iterable[ShadowState]) -> States:
    """Returns the states, and all states that can be reached from them through any requests."""
    places = [Effect(places=ShadowState.PLACED), Effect(places=ShadowState.AWAITING_PAYMENT)]
    return _closure(states, [*places, Effect(event=OrderEvent.PAY)])
