"""Turns observations into operations, which Porcupine can judge (lab/judged/porcupine).

    model   object                  operations
    order   an Idempotency-Key      place, pay, cancel, read state, deliver, credit, read credits, end
    queue   a queue of the topic    append, pull
    group   a queue of the topic    consume, end: of the orderly consumer group

A request without a final response may take effect at any later time, or never: its operation never completes. Of such requests of
one kind about one order, all after the first have no further effect, so the first stands for all of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from lab.judged.observations import (
    Interval,
    Observed,
    ObservedConsumption,
    ObservedCredits,
    ObservedEnd,
    ObservedPull,
    ObservedRequest,
    ObservedState,
)

UNKNOWN = "unknown"
_RESULTS = {HTTPStatus.OK: "done", HTTPStatus.CREATED: "done", HTTPStatus.CONFLICT: "refused", HTTPStatus.NOT_FOUND: "missing"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedOperation:
    """An operation on one object of a model. Without `return_ns` it never completes."""

    model: str
    object: str
    name: str
    call_ns: int
    return_ns: int | None
    result: str = ""
    """`done`, `refused`, `missing` or `unknown` for requests, `done` or `later` for consume, and the state for read state."""
    order: str = ""
    offset: int = 0
    """The queue offset; for a group's end the number of messages of the queue."""
    orders: tuple[str, ...] = ()
    """The orders of a pull; for an order's end one item for each of its messages."""
    count: int = 0
    """The number of the order's credits."""


def result_of(request: ObservedRequest) -> str:
    """Returns `done`, `refused`, `missing` or `unknown`: only a final response says what happened."""
    return _RESULTS.get(HTTPStatus(request.status), UNKNOWN) if request.status is not None else UNKNOWN


def operations_of(observed: Iterable[Observed], end: ObservedEnd) -> list[JudgedOperation]:
    """Returns the history of a run. An order that the order database lacks at the end is judged under its id."""
    found = list(observed)
    requests = [one for one in found if isinstance(one, ObservedRequest)]
    keys = {**{one.order_id: one.key for one in requests if one.order_id}, **end.keys}
    return [
        *_requests(requests),
        *_appends([one for one in found if isinstance(one, ObservedPull)], requests, keys),
        *(operation for one in found for operation in _of(one, keys)),
        *_ends(end, keys, {one.key for one in requests}),
    ]


def _requests(requests: Iterable[ObservedRequest]) -> Iterator[JudgedOperation]:
    unknown = set()
    for one in sorted(requests, key=lambda request: request.at.call_ns):
        result = result_of(one)
        if result == UNKNOWN:
            if (one.key, one.name) in unknown:
                continue
            unknown.add((one.key, one.name))
        yield JudgedOperation(
            model="order",
            object=one.key,
            name=one.name,
            call_ns=one.at.call_ns,
            return_ns=None if result == UNKNOWN else one.at.return_ns,
            result=result,
            order=one.order_id,
        )


def _appends(
    pulls: Iterable[ObservedPull], requests: Iterable[ObservedRequest], keys: Mapping[str, str]
) -> Iterator[JudgedOperation]:
    """Yields an append for each offset and order that a pull has shown: after the first request, before the pull's return."""
    called: dict[str, int] = {}
    for request in requests:
        called[request.key] = min(request.at.call_ns, called.get(request.key, request.at.call_ns))
    shown: dict[tuple[str, int, str], int] = {}
    for pull in pulls:
        for offset, order_id in pull.messages:
            key = (pull.queue, offset, order_id)
            shown[key] = min(pull.at.return_ns, shown.get(key, pull.at.return_ns))
    for (queue, offset, order_id), return_ns in shown.items():
        call_ns = min(called.get(keys.get(order_id, ""), return_ns), return_ns)
        yield _operation("queue", queue, "append", Interval(call_ns, return_ns), order=order_id, offset=offset)


def _of(one: Observed, keys: Mapping[str, str]) -> Iterator[JudgedOperation]:
    match one:
        case ObservedPull(queue, offset, at, messages):
            orders = tuple(order_id for _, order_id in messages)
            yield _operation("queue", queue, "pull", at, offset=offset, orders=orders)
            for order_id in orders:
                yield _operation("order", keys.get(order_id, order_id), "deliver", at, order=order_id)
        case ObservedConsumption(queue, offset, order_id, at, is_success):
            yield _operation("group", queue, "consume", at, offset=offset, result="done" if is_success else "later")
            yield _operation("order", keys.get(order_id, order_id), "deliver", at, order=order_id)
        case ObservedState(order_id, at, state):
            yield _operation("order", keys.get(order_id, order_id), "read state", at, result=state)
        case ObservedCredits(order_id, before, before_at, after, after_at):
            key = keys.get(order_id, order_id)
            yield _operation("order", key, "read credits", before_at, count=before)
            for _ in range(after - before):
                yield _operation("order", key, "credit", Interval(before_at.call_ns, after_at.return_ns))
            yield _operation("order", key, "read credits", after_at, count=after)


def _ends(end: ObservedEnd, keys: Mapping[str, str], requested: set[str]) -> Iterator[JudgedOperation]:
    of_key: dict[str, set[str]] = {key: set() for key in requested}
    delivered = [order_id for orders in end.queues.values() for order_id in orders]
    for order_id in {*keys, *delivered, *end.credits}:
        of_key.setdefault(keys.get(order_id, order_id), set()).add(order_id)
    for key, order_ids in of_key.items():
        orders = tuple(order_id for order_id in delivered if order_id in order_ids) if order_ids else ()
        count = sum(end.credits.get(order_id, 0) for order_id in order_ids)
        yield _operation("order", key, "end", end.at, orders=orders, count=count)
    for queue, of_queue in end.queues.items():
        yield _operation("group", queue, "end", end.at, offset=len(of_queue))


def _operation(
    model: str, name_of_object: str, name: str, at: Interval, *,
    result: str = "", order: str = "", offset: int = 0, orders: tuple[str, ...] = (), count: int = 0,
) -> JudgedOperation:  # fmt: skip
    return JudgedOperation(
        model=model, object=name_of_object, name=name, call_ns=at.call_ns, return_ns=at.return_ns,
        result=result, order=order, offset=offset, orders=orders, count=count,
    )  # fmt: skip
