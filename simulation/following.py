"""The shadow follows the customers: their requests and answers in its words."""

from __future__ import annotations

from typing import Final

from simulation.customers.requests import CancelRequest, PayRequest, PlaceRequest, ServiceAnswer, ServiceRequest
from simulation.judges.shadow import AnswerKind, CustomerAnswer, CustomerRequest, RequestKind, SentRequest, Shadow, ShadowState
from simulation.judges.violation import Violation

_KIND_OF: Final = {
    200: AnswerKind.DONE, 201: AnswerKind.DONE, 202: AnswerKind.UNKNOWN, 404: AnswerKind.NOT_FOUND, 409: AnswerKind.REFUSED,
    422: AnswerKind.KEY_REUSED, 503: AnswerKind.UNAVAILABLE,
}  # fmt: skip


class ShadowFollower:
    """Tells the shadow of each request when it is sent, and of its answer."""

    def __init__(self, shadow: Shadow) -> None:
        """`shadow` predicts the answers."""
        self.shadow = shadow

    def sent(self, customer: str, request: ServiceRequest) -> SentRequest:
        """Takes a request at the moment when its customer sends it."""
        if isinstance(request, PlaceRequest):
            total_cents = sum(item.quantity * item.price_cents for item in request.items)
            return self.shadow.send(
                CustomerRequest(
                    customer, RequestKind.PLACE, None, request.key, total_cents=total_cents, is_paid_later=request.is_paid_later
                )
            )
        kind = RequestKind.READ
        if isinstance(request, PayRequest | CancelRequest):
            kind = RequestKind.PAY if isinstance(request, PayRequest) else RequestKind.CANCEL
        return self.shadow.send(CustomerRequest(customer, kind, request.order_id))

    def answered(self, sent: SentRequest, answer: ServiceAnswer) -> list[Violation]:
        """Takes the answer, or that none came."""
        kind = AnswerKind.LOST if answer.status is None else _KIND_OF.get(answer.status, AnswerKind.LOST)
        if answer.is_refused_connection:
            kind = AnswerKind.UNAVAILABLE
        state = None if answer.order_state is None else ShadowState(answer.order_state)
        return self.shadow.answer(sent, CustomerAnswer(kind, answer.order_id, state, answer.is_replay))
