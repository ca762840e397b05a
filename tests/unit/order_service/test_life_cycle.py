from order_messages.states import OrderState
from order_service.domain.life_cycle import OrderEvent, next_state

PLACED, AWAITING, PAID = OrderState.PLACED, OrderState.AWAITING_PAYMENT, OrderState.PAID
CANCELLED, EXPIRED = OrderState.CANCELLED, OrderState.EXPIRED


def test_each_event_leads_from_each_state_where_the_table_says_and_nowhere_else() -> None:
    found = {(state, event): next_state(state, event) for state in OrderState for event in OrderEvent}
    assert {step: after for step, after in found.items() if after} == {
        (AWAITING, OrderEvent.PAY): PAID,
        (AWAITING, OrderEvent.EXPIRE): EXPIRED,
        (AWAITING, OrderEvent.CANCEL): CANCELLED,
        (PLACED, OrderEvent.CANCEL): CANCELLED,
        (PAID, OrderEvent.CANCEL): CANCELLED,
    }


def test_no_order_that_was_told_expires() -> None:
    """A published order does not expire, because consumers already have its message."""
    assert [next_state(state, OrderEvent.EXPIRE) for state in OrderState if state.is_published] == [None, None]
