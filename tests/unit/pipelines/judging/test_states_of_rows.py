"""Tests that the judge takes state names from `order_messages.states`, as the services do.

Other constants of the services, which the judge copies, are compared with the originals.
"""

import ast
from pathlib import Path

from credit_service.domain.credit import CENTS_IN_A_UNIT, Credit
from order_messages.states import BY_REFUSAL, OrderState, TransactionState
from order_service.domain.life_cycle import OrderEvent, next_state
from pipelines.judging.table_events import CENTS_PER_POINT

ROOT = Path(__file__).resolve().parents[4]
PACKAGES = ("order_service", "credit_service", "inventory_service", "service_runtime", "pipelines")
STATES = {*OrderState, *TransactionState}


def states_as_text(path: Path) -> list[str]:
    """Returns the strings of a module that are a state or an SQL comparison with a state."""
    texts = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
    return [text for text in texts if isinstance(text, str) and (text in STATES or any(f"'{state}'" in text for state in STATES))]


def test_no_service_and_no_pipeline_writes_a_state_as_text() -> None:
    """No module of the services or pipelines contains a state as a string.

    Migrations are excluded, because they keep the states of their version.
    """
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts]
    written = {str(path.relative_to(ROOT)): states_as_text(path) for path in paths}
    assert {path: texts for path, texts in written.items() if texts} == {}


def test_a_refused_order_is_known_by_its_entries() -> None:
    asked = Credit(order_id="a", customer="ada", amount_cents=1, message_id="M", transaction_id="T")
    assert [entry.message_id for entry in asked.annulled()] == [f"{BY_REFUSAL}M"] * 2


def test_points_are_counted_alike() -> None:
    assert CENTS_PER_POINT == CENTS_IN_A_UNIT


def test_a_state_that_follows_another_stands_below_it() -> None:
    """A state is defined after each state that can precede it.

    An incremental run relies on this order: of the states that it has read for an order, it keeps the last one.
    """
    followers = [
        (state, after) for state in OrderState for event in OrderEvent if (after := next_state(state, event)) is not None
    ]
    assert followers
    states = list(OrderState)
    assert all(states.index(state) < states.index(after) for state, after in followers)
