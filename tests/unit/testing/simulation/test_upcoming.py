"""Tests that planned items are due at the occurrence for which they were added."""

from rocketmq_broker.testing.simulation.upcoming import Upcoming


def test_an_item_is_due_once_at_its_occurrence_counted_from_the_time_it_is_added() -> None:
    upcoming: Upcoming[str] = Upcoming()
    upcoming.add(2, "second")
    assert upcoming.occur() == []
    upcoming.add(1, "next")
    upcoming.add(2, "after the next")
    assert upcoming.occur() == ["second", "next"]
    assert upcoming.occur() == ["after the next"]
    assert upcoming.occur() == []


def test_a_removed_item_is_never_due() -> None:
    upcoming: Upcoming[str] = Upcoming()
    upcoming.add(1, "next")
    upcoming.clear()
    assert upcoming.occur() == []
