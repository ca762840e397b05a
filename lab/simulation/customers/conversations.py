"""Converts customers' requests and the responses to the types that the judges read."""

from lab.simulation.customers.customers import AnsweredRequest
from lab.simulation.customers.requests import PayRequest, PlaceRequest, ServiceRequest
from lab.simulation.judges.conversations import Conversation, kind_of
from lab.simulation.judges.order_shadow import ShadowState
from lab.simulation.judges.shadow import CustomerAnswer, CustomerRequest, RequestKind


def conversation(asked: AnsweredRequest, customer: str) -> Conversation:
    """Returns a request and its response as a conversation, which the judges read."""
    answer = asked.answer
    state = None if answer.order_state is None else ShadowState(answer.order_state)
    kind = kind_of(answer.status, is_refused_connection=answer.is_refused_connection)
    answered = CustomerAnswer(kind, answer.order_id, state, answer.is_replay)
    return Conversation(asked.asked_ns, asked.answered_ns, _request(asked.request, customer), answered)


def _request(request: ServiceRequest, customer: str) -> CustomerRequest:
    if isinstance(request, PlaceRequest):
        total_cents = sum(item.quantity * item.price_cents for item in request.items)
        return CustomerRequest(
            customer, RequestKind.PLACE, None, request.key, total_cents=total_cents, is_paid_later=request.is_paid_later
        )
    kind = RequestKind.PAY if isinstance(request, PayRequest) else RequestKind.CANCEL
    return CustomerRequest(customer, kind, request.order_id)
