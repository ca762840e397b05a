from rocketmq_broker.cluster.leaving import Remainder


def test_a_broker_that_holds_nothing_is_drained() -> None:
    assert Remainder().is_empty


def test_whatever_is_held_keeps_a_broker_and_is_told() -> None:
    held = Remainder(2, 1, (("orders", "credit", 3), ("old", "", 4)), 5)
    assert held.text() == (
        "2 pending transactions, 1 delayed messages, 3 of orders for credit, 4 of old, which no group consumes, "
        "5 untreated dead letters or discarded messages (rocketmq-admin doctor)"
    )
    for one in (Remainder(pending=1), Remainder(delayed=1), Remainder(unconsumed=(("orders", "", 1),)), Remainder(parked=1)):
        assert not one.is_empty
