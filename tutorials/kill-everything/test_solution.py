"""Tests the solution of the exercise: a customer who repeats a request has one order and one credit after every kill."""

import pytest

from tutorials.kills.cells import Moment, Victim
from tutorials.kills.order_service import PLACED, REFUSED, OrderService
from tutorials.kills.playing import play

CELLS = [(moment, victim) for moment in Moment for victim in Victim]


class PoliteOrderService(OrderService):
    """An order service that responds to a repeated request with PLACED if the order is stored."""

    async def place(self, order_id: str, thing: str) -> str:
        heard = await super().place(order_id, thing)
        stored = self.database.execute("SELECT thing FROM orders WHERE order_id = ?", (order_id,)).fetchone()
        return PLACED if stored == (thing,) else heard


def test_an_insistent_customer_is_told_a_lie_by_the_first_order_service() -> None:
    outcome = play(Moment.STORED, Victim.ORDER_SERVICE, insists=True)
    assert (outcome.heard, outcome.orders, outcome.credits) == (REFUSED, 1, 1)


@pytest.mark.parametrize(("moment", "victim"), CELLS)
def test_an_insistent_customer_ends_with_one_order_and_one_credit_in_every_cell(moment: Moment, victim: Victim) -> None:
    outcome = play(moment, victim, insists=True, order_service=PoliteOrderService)
    assert (outcome.heard, outcome.orders, outcome.credits) == (PLACED, 1, 1)
