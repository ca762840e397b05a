"""Customers that carry out the plan's actions, and repeat a request while its outcome is unknown."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

from lab.simulation.action_kinds import ActionKind
from lab.simulation.customers.requests import CancelRequest, PayRequest, PlaceRequest, ServiceAnswer, ServiceRequest
from lab.simulation.services.order_process import OrderProcess
from lab.simulation.services.shop import SimulatedShop
from order_service.domain.order import Item
from rocketmq_broker.testing.simulation.plan import PlannedEvent
from rocketmq_broker.testing.simulation.world import SimulatedWorld
from rocketmq_broker.world import Chance

PATIENCE_S: Final = 30.0
"""The maximum time in seconds that a customer waits for a response."""
_MAX_WAY_S: Final = 0.02
_PAUSES_S: Final = (1.0, 3.0, 10.0, 20.0, 30.0, 60.0)
"""The pauses in seconds between a customer's attempts."""
_NOBODY: Final = ServiceAnswer(None, text="no order service listens", is_refused_connection=True)
_LOST: Final = ServiceAnswer(None, text="no answer")


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A request and its response."""

    number: int
    """The number of the order in the plan."""
    request: ServiceRequest
    asked_ns: int
    answered_ns: int
    answer: ServiceAnswer


@dataclass(frozen=True, slots=True)
class CustomerAction:
    """An action that a customer carries out."""

    kind: ActionKind
    customer: str
    number: int
    """The number of the order in the plan."""
    items: tuple[Item, ...] = ()
    key: str | None = None
    is_paid_later: bool = False
    tries: int = len(_PAUSES_S)
    """The maximum number of attempts. If it is 1, the customer ignores the answer."""

    @classmethod
    def of(cls, event: PlannedEvent) -> Self:
        """Reads an action of a plan. Raises UnreadablePlan."""
        key, tries = event.parameters.get("key"), event.parameters.get("tries", len(_PAUSES_S))
        items = tuple(Item(str(name), quantity, price_cents) for name, quantity, price_cents in event.parameters.get("items", ()))
        is_paid_later = bool(event.parameters.get("pays_later"))
        return cls(ActionKind(event.what), event.where, event.whole("order"), items, key, is_paid_later, int(tries))


class Customers:
    """The customers of a simulation. Their machines never fail."""

    def __init__(self, shop: SimulatedShop, *, lost_answers: float = 0.0, lost_requests: float = 0.0) -> None:
        """Creates the customers. `lost_answers` and `lost_requests` are the probabilities of losing a response or a request."""
        self._shop = shop
        self._world: SimulatedWorld = shop.world
        self._lost_answers, self._lost_requests = lost_answers, lost_requests
        self.observers: list[Callable[[AnsweredRequest], object]] = []
        """Callbacks that are called with each request after it has ended."""
        self.placings: dict[int, PlaceRequest] = {}
        """Maps the number of an order in the plan to the request that places it."""
        self.order_ids: dict[int, str] = {}
        """Maps the number of an order in the plan to the order id in the answer."""
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def done(self) -> None:
        """Waits until all started actions are done."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def act(self, action: CustomerAction) -> ServiceAnswer | None:
        """Carries out the action now. Returns the last response, or None if the customer has no order to pay or cancel."""
        chance = self._world.chance("customer", action.customer, action.number, action.kind)
        if action.kind is ActionKind.PLACE:
            self.placings[action.number] = PlaceRequest(action.customer, action.items, action.key, action.is_paid_later)
        answer: ServiceAnswer | None = None
        for pause_s in (0.0, *_PAUSES_S[: action.tries - 1]):
            await asyncio.sleep(pause_s * (1 + chance.random() / 2))
            request = await self._request_of(action, chance)
            if request is None:
                return answer
            answer = await self._ask(action, request, chance)
            may_repeat = not isinstance(request, PlaceRequest) or request.key is not None or answer.is_refused_connection
            if not answer.may_change or not may_repeat:
                return answer
        return answer

    def begin(self, action: CustomerAction) -> None:
        """Begins the action now."""
        task = self._world.do(self._acted(action))
        self._tasks[task] = None

    async def _acted(self, action: CustomerAction) -> None:
        try:
            await self.act(action)
        finally:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.pop(task, None)

    async def _request_of(self, action: CustomerAction, chance: Chance) -> ServiceRequest | None:
        """Returns the request, or None if it cannot be sent.

        A customer who does not have the order id first places the order again with the same idempotency key.
        """
        if action.kind in (ActionKind.PLACE, ActionKind.PLACE_AGAIN):
            return self.placings.get(action.number)
        placing = self.placings.get(action.number)
        if action.number not in self.order_ids and placing is not None and placing.key is not None:
            await self._ask(action, placing, chance)
        order_id = self.order_ids.get(action.number)
        if order_id is None:
            return None
        return PayRequest(order_id) if action.kind is ActionKind.PAY else CancelRequest(order_id)

    async def _ask(self, action: CustomerAction, request: ServiceRequest, chance: Chance) -> ServiceAnswer:
        """Sends the request to one of the running order services."""
        began_ns = self._world.loop.elapsed_ns()
        self._note(action, "action", f"{_told(request)}", request)
        answer = await self._answer(request, chance)
        if isinstance(request, PlaceRequest) and answer.order_id is not None:
            self.order_ids[action.number] = answer.order_id
        self._note(action, "answer", _words(answer), request, answer.order_id)
        asked = AnsweredRequest(action.number, request, began_ns, self._world.loop.elapsed_ns(), answer)
        for observer in self.observers:
            observer(asked)
        return answer

    async def _answer(self, request: ServiceRequest, chance: Chance) -> ServiceAnswer:
        await asyncio.sleep(chance.random() * _MAX_WAY_S)
        services = self._shop.serving()
        if not services:
            return _NOBODY
        is_lost, is_answer_lost = chance.random() < self._lost_requests, chance.random() < self._lost_answers
        service = services[chance.randrange(len(services))]
        answer = _LOST if is_lost else await self._answered_by(service, request)
        if is_lost or is_answer_lost:
            await asyncio.sleep(PATIENCE_S)
            return _LOST
        await asyncio.sleep(chance.random() * _MAX_WAY_S)
        return answer

    async def _answered_by(self, service: OrderProcess, request: ServiceRequest) -> ServiceAnswer:
        """Returns the service's response. The response has no status if the process exits or does not respond in time."""
        has_died: asyncio.Future[None] = self._world.loop.create_future()
        service.process.on_death(lambda: _settle(has_died))
        working = service.process.start_thread(service.answer, request)
        ends: list[asyncio.Future[Any]] = [working, has_died]
        await asyncio.wait(ends, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            return _LOST
        error = working.exception()
        if error is None:
            return working.result()
        self._world.errors.append(f"{service.process.name} answers {request} with {type(error).__name__}: {error}")
        return ServiceAnswer(500, text=f"{type(error).__name__}: {error}")

    def _note(self, action: CustomerAction, kind: str, text: str, request: ServiceRequest, order_id: str | None = None) -> None:
        order_id = order_id or getattr(request, "order_id", None) or self.order_ids.get(action.number)
        keys = (f"#{action.number}", *([order_id] if order_id else []))
        self._world.history.note(action.customer, kind, text, keys)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _told(request: ServiceRequest) -> str:
    if not isinstance(request, PlaceRequest):
        return f"{type(request).__name__.lower()} the order"
    key = f" with key {request.key}" if request.key else ""
    return f"place an order{' to be paid later' if request.is_paid_later else ''}{key}"


def _words(answer: ServiceAnswer) -> str:
    words = [str(answer.status or "no answer"), answer.order_state, answer.transaction_state, answer.text]
    return " ".join(word for word in words if word) + (" (as before)" if answer.is_replay else "")
