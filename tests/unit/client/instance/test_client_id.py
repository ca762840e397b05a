"""Tests that the ids of clients are unique."""

from rocketmq_broker.client.instance.instance import new_client_id
from rocketmq_broker.world import World


def test_clients_that_start_at_one_reading_of_the_clock_have_different_ids() -> None:
    world = World(steady_ns=lambda: 7_000_000_000, process_id=lambda: 42)
    assert [new_client_id(world, "192.0.2.9") for _ in range(3)] == [
        f"192.0.2.9@42#{7_000_000_000 + count}" for count in range(3)
    ]
