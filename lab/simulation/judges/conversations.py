"""What customers asked and were told in a whole world, given to the shadow in the order of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from lab.simulation.judges.shadow import AnswerKind, CustomerAnswer, CustomerRequest, SentRequest, Shadow
from lab.simulation.judges.violation import Violation
from pipelines.judging.without_spark.table_events import Row

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
    """A request and its answer, with the times at which the customer sent the one and got the other, or gave up."""

    asked_ns: int
    answered_ns: int
    request: CustomerRequest
    answer: CustomerAnswer


@dataclass(frozen=True, slots=True)
class CustomersReport:
    """What the shadow found, and which orders customers were told of."""

    violations: tuple[Violation, ...]
    told: dict[str, str]
    """The customer of each order that is placed, as he was told; `liveness.judge_end` takes it."""


def kind_of(status: int | None, *, is_refused_connection: bool = False) -> AnswerKind:
    """Returns what an HTTP status says. After no answer, and after a mistake of the service (500), nobody knows what was done."""
    if is_refused_connection:
        return AnswerKind.UNREACHED
    return AnswerKind.LOST if status is None else _KINDS.get(status, AnswerKind.LOST)


def judge_conversations(conversations: Iterable[Conversation], orders: Iterable[Row], order_limit_cents: int) -> CustomersReport:
    """Judges all answers, and then the rows of the orders, once no request is on its way any longer.

    Of what happens at one moment, the earlier one of `conversations` comes first.
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
