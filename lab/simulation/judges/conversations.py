"""Compares all requests and responses of a simulation, in chronological order, with the shadow model."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from lab.simulation.judges.shadow import AnswerKind, CustomerAnswer, CustomerRequest, SentRequest, Shadow
from lab.simulation.judges.violation import Violation
from pipelines.judging.without_spark.in_sqlite import Row

_KINDS: Final = {
    200: AnswerKind.DONE,
    201: AnswerKind.DONE,
    202: AnswerKind.UNKNOWN,
    404: AnswerKind.NOT_FOUND,
    409: AnswerKind.REFUSED,
    422: AnswerKind.KEY_REUSED,
    503: AnswerKind.UNAVAILABLE,
}


@dataclass(frozen=True, slots=True)
class Conversation:
    """A request and its response, with the times at which the customer sent the request and received the response or gave up."""

    asked_ns: int
    answered_ns: int
    request: CustomerRequest
    answer: CustomerAnswer


@dataclass(frozen=True, slots=True)
class CustomersReport:
    """The violations found, and the orders that were confirmed to customers."""

    violations: tuple[Violation, ...]
    told: dict[str, str]
    """Maps each order id that was confirmed to a customer to that customer. The map is passed to `liveness.judge_end`."""


def kind_of(status: int | None, *, is_refused_connection: bool = False) -> AnswerKind:
    """Returns the kind of an HTTP status. Without a response, or for status 500, the outcome is unknown."""
    if is_refused_connection:
        return AnswerKind.UNREACHED
    return AnswerKind.LOST if status is None else _KINDS.get(status, AnswerKind.LOST)


def judge_conversations(conversations: Iterable[Conversation], orders: Iterable[Row], order_limit_cents: int) -> CustomersReport:
    """Checks all responses with the shadow model, and then the rows of all orders.

    Conversations at the same time are processed in the order of `conversations`.
    """
    shadow, found = Shadow(order_limit_cents), list[Violation]()
    moments = []
    for number, one in enumerate(conversations):
        moments += [(one.asked_ns, number, False, one), (one.answered_ns, number, True, one)]
    sent: dict[int, SentRequest] = {}
    for _, number, is_answer, one in sorted(moments, key=lambda moment: moment[:3]):
        if is_answer:
            found += shadow.answer(sent.pop(number), one.answer)
        else:
            sent[number] = shadow.send(one.request)
    found += shadow.judge_end(orders)
    return CustomersReport(tuple(found), shadow.told)
