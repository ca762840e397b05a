"""Tests the parts of a world's page: linked names, times, and the events of a history."""

import pytest

from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.page import ReportedEvent, reported_events
from rocketmq_broker.testing.simulation.page.connecting import MAX_NEIGHBOURS, connected_keys
from rocketmq_broker.testing.simulation.page.markup import counted, listed, moment_text, wait_text
from tests.unit.testing.simulation.world_reports import at


def about(*keys: str) -> ReportedEvent:
    return at(1, "a", "row", "it happens", *keys)


def test_names_are_connected_over_several_steps() -> None:
    happenings = [about("order-1", "tx-1"), about("tx-1", "message-1"), about("message-1", "task-1"), about("order-2", "tx-2")]
    assert connected_keys(happenings, ["task-1"]) == {"order-1", "tx-1", "message-1", "task-1"}


def test_a_name_common_to_many_orders_leads_to_none_of_them() -> None:
    happenings = [about(f"order-{number}", "ann") for number in range(MAX_NEIGHBOURS + 1)]
    assert connected_keys(happenings, ["order-3"]) == {"order-3", "ann"}


def test_a_broken_promise_about_a_common_name_leads_to_all_its_orders() -> None:
    happenings = [about(f"order-{number}", "ann") for number in range(MAX_NEIGHBOURS + 1)]
    assert len(connected_keys(happenings, ["ann"])) == MAX_NEIGHBOURS + 2


def test_a_name_that_nothing_is_about_leads_nowhere() -> None:
    assert connected_keys([about("order-1")], ["order-2"]) == {"order-2"}


@pytest.mark.parametrize(
    ("at_ns", "text"),
    [(0, "0:00.000"), (999_999, "0:00.000"), (81_204_000_000, "1:21.204"), (7_503_100_000_000, "2:05:03.100")],
)
def test_a_moment_is_told_to_the_millisecond(at_ns: int, text: str) -> None:
    assert moment_text(at_ns) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.9, "1 s"),
        (57.4, "57 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (7_200, "2 h"),
        (7_541, "2 h 5 min"),
        (200_000, "55 h 33 min"),
    ],
)
def test_a_wait_is_told_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert wait_text(round(seconds * 1e9)) == text


def test_numbers_and_lists_read_as_in_a_sentence() -> None:
    assert [counted(1, "fault"), counted(1_234, "fault")] == ["1 fault", "1,234 faults"]
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


def test_a_link_of_a_history_is_an_arrow() -> None:
    history = History(lambda: 7)
    history.note("orders-1 -> broker-a", "frame-lost", "a COMMIT is lost", ("tx-1",))
    assert reported_events(history.happenings) == (
        ReportedEvent(7, "orders-1", "frame-lost", "a COMMIT is lost", ("tx-1",), "broker-a"),
    )


def test_a_happening_of_a_process_keeps_its_kind_and_where_it_arrives() -> None:
    history = History(lambda: 7)
    history.note("orders-1", "half", "half message", ("tx-1",), to="broker-a")
    assert reported_events(history.happenings) == (ReportedEvent(7, "orders-1", "half", "half message", ("tx-1",), "broker-a"),)


def test_what_the_world_notes_itself_concerns_all_lanes() -> None:
    history = History(lambda: 7)
    history.note("world", "error", "a task failed")
    assert [one.process for one in reported_events(history.happenings)] == [""]
