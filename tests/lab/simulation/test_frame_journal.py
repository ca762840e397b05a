"""The journal shows a world's frames, from an order's half message to its delivery, as arrows between processes."""

from pathlib import Path

from lab.simulation.world import play
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent, read_plan

ROOT = Path(__file__).parents[3]
ITEMS = [["pen", 1, 300]]
PLACED = PlannedEvent(1.0, "order.place", "ana", parameters={"order": 1, "items": ITEMS, "key": "ana-1", "pays_later": False})


def arrows(*events: PlannedEvent) -> list[tuple[str, str, str | None]]:
    """Returns kind, sender and receiver of each arrow in a world with these events."""
    played = play(Plan(1, {"check_immunity_s": 2.0}, (), 40.0).with_events(events))
    assert played.broken == ()
    return [(it.kind, it.process, it.to) for it in played.happenings if it.to is not None]


def test_an_order_goes_as_half_message_commit_and_delivery() -> None:
    assert arrows(PLACED) == [
        ("half", "orders-1", "broker-a"),
        ("commit", "orders-1", "broker-a"),
        ("delivery", "broker-a", "credits-1"),
    ]


def test_a_check_back_and_its_answer_are_told() -> None:
    kept = read_plan((ROOT / "tutorials" / "take-the-barrier-out" / "late_orders.json").read_bytes())
    told = [(it.kind, it.text) for it in play(kept).happenings if it.to is not None]
    first = told.index(("check", "check-back"))
    assert any(text.endswith(", the answer to a check-back") for _, text in told[first:])
    assert not any(text.endswith(", the answer to a check-back") for _, text in told[:first])
