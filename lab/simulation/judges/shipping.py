"""Checks the shipments at the end of a simulation.

Each order must be shipped, or be short of stock according to the inventory service's rules.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from inventory_service.domain.shipment import ShipmentLine, ShipmentState, totals
from lab.simulation.judges.books import WorldBooks
from lab.simulation.judges.broker_lists import BrokerLists
from lab.simulation.judges.violation import Promise, Violation
from order_messages.states import OrderState
from pipelines.judging.without_spark.in_sqlite import Row

_WHILE_IT_STANDS: Final = frozenset({ShipmentState.SHIPPED})
_AFTER_ITS_END: Final = frozenset({ShipmentState.SHORT, ShipmentState.RETURNED, ShipmentState.CALLED_OFF})


def shipping_violations(books: WorldBooks, lists: BrokerLists) -> list[Violation]:
    """Returns a violation for each order with a wrong or missing shipment.

    The shipment may be missing if the order is on a list of dead letters, or its message is parked.
    """
    named = lists.names_of("inventory_service") | books.parked.get("inventory_service", frozenset())
    undone = lists.names_of("order_service")
    shipments = {row["order_id"]: row for row in books.shipments}
    wanted, taken = _lines(books.tables.order_items, "name"), _lines(books.shipment_lines, "article")
    announced = books.announced
    found: dict[str, str] = {}
    for order in books.tables.orders:
        order_id, state, shipment = order["order_id"], OrderState(order["state"]), shipments.get(order["order_id"])
        if shipment is None:
            if order_id in announced and order_id not in named:
                found[order_id] = f"the order is {state}, and has no shipment"
        elif order_id not in announced:
            found[order_id] = f"the order is {state}, was never announced, and its shipment is {shipment['state']}"
        elif shipment["state"] not in (_WHILE_IT_STANDS if state.is_published else _AFTER_ITS_END):
            if order_id not in (undone if state.is_published else named):
                found[order_id] = f"the order is {state}, and its shipment is {shipment['state']}"
        elif problem := _problem(shipment, wanted.get(order_id, {}), taken.get(order_id, {})):
            found[order_id] = problem
    strangers = shipments.keys() - {order["order_id"] for order in books.tables.orders}
    for order_id in sorted(strangers):
        found[order_id] = f"a shipment is {shipments[order_id]['state']}, and no order has its id"
    return [Violation(Promise.ORDER_HAS_SHIPMENT, text, (order_id,)) for order_id, text in found.items()]


def _lines(rows: tuple[Row, ...], article: str) -> Mapping[str, Mapping[str, int]]:
    lines: dict[str, list[ShipmentLine]] = defaultdict(list)
    for row in rows:
        lines[row["order_id"]].append(ShipmentLine(row[article], row["quantity"]))
    return {order_id: totals(of_order) for order_id, of_order in lines.items()}


def _problem(shipment: Row, wanted: Mapping[str, int], taken: Mapping[str, int]) -> str | None:
    """Describes the difference between the order and the stock taken for it, or returns None. Ignores untracked articles."""
    is_taken = shipment["state"] in (ShipmentState.SHIPPED, ShipmentState.RETURNED)
    if not is_taken and taken:
        return f"the shipment is {shipment['state']}, and took {dict(taken)} from stock"
    if any(wanted.get(article) != quantity for article, quantity in taken.items()):
        return f"the order wants {dict(wanted)}, and the shipment took {dict(taken)} from stock"
    if shipment["state"] == ShipmentState.SHORT and shipment["missing"] not in wanted:
        return f"the order is short of {shipment['missing']!r}, which it does not want"
    return None
