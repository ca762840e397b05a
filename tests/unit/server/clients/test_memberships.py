"""Tests the index of groups by connection."""

from rocketmq_broker.server.clients.client_channel import Memberships


def test_groups_and_their_number_follow_who_joins_and_leaves() -> None:
    memberships, here, there = Memberships(), object(), object()
    for connection, group in ((here, "a"), (here, "b"), (there, "a")):
        memberships.add(connection, group)  # type: ignore[arg-type]
    assert (memberships.of(here), memberships.of(there), memberships.count) == ({"a", "b"}, {"a"}, 3)  # type: ignore[arg-type]
    memberships.remove(here, "a")  # type: ignore[arg-type]
    memberships.remove(there, "a")  # type: ignore[arg-type]
    assert (memberships.of(here), memberships.of(there), memberships.count) == ({"b"}, set(), 1)  # type: ignore[arg-type]
