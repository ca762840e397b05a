from dataclasses import replace

from rich.console import Console

from demo.books import BookedCredit, BookedOrder
from demo.commit_log import Trace
from demo.story import Story, choose_story, events_of, story_table
from tests.unit.demo.records import trace_of


def order_of(order_id: str) -> BookedOrder:
    return BookedOrder(order_id, "ada", 2_500, 1_010)


def credit_of(order_id: str) -> BookedCredit:
    return BookedCredit(order_id, "ada", 25, None, 4_100)


def story_of(checks: int) -> Story:
    return Story(trace_of("order", checks=checks), order_of("order"), credit_of("order"))


def test_names_in_a_story_are_no_markup_and_no_commands_for_the_terminal() -> None:
    hostile = replace(story_of(checks=0), order=BookedOrder("[/red]\x1b[2J", "[/b]\x1b]0;", 2_500, 1_010))
    console = Console(width=160)
    with console.capture() as shown:
        console.print(story_table(hostile, []))
    assert "Order [/red]\\x1b[2J" in shown.get()
    assert "[/b]\\x1b]0;" in shown.get()


def test_an_order_resolved_by_check_back_is_preferred() -> None:
    orders = {name: order_of(name) for name in ("plain", "checked")}
    story = choose_story([trace_of("plain"), trace_of("checked", checks=1)], orders, [credit_of("plain"), credit_of("checked")])
    assert story is not None
    assert story.order.order_id == "checked"


def test_of_several_resolved_by_check_back_the_one_decided_soonest_is_preferred() -> None:
    orders = {name: order_of(name) for name in ("late", "soon")}
    late, soon = trace_of("late", checks=1), trace_of("soon", checks=1)
    soon.half = replace(soon.half, store_timestamp=2_000)
    story = choose_story([late, soon], orders, [credit_of("late"), credit_of("soon")])
    assert story is not None
    assert story.order.order_id == "soon"


def test_an_order_that_lost_its_commit_with_the_order_service_is_preferred_to_one_that_was_merely_slow() -> None:
    orders = {name: order_of(name) for name in ("slow", "lost")}
    slow, lost = trace_of("slow", checks=1), trace_of("lost", checks=1)
    slow.half = replace(slow.half, store_timestamp=3_000)
    orders["slow"] = replace(orders["slow"], committed_at_ms=3_900)
    story = choose_story([slow, lost], orders, [credit_of("slow"), credit_of("lost")], deaths_ms=[2_000])
    assert story is not None
    assert story.order.order_id == "lost"


def test_without_a_check_back_any_finished_order_will_do() -> None:
    story = choose_story([trace_of("plain")], {"plain": order_of("plain")}, [credit_of("plain")])
    assert story is not None
    assert story.trace.checks == 0


def test_an_order_without_credit_has_no_story_yet() -> None:
    assert choose_story([trace_of("plain")], {"plain": order_of("plain")}, []) is None


def test_a_pending_transaction_has_no_story_yet() -> None:
    pending = Trace(trace_of("plain").half)
    assert choose_story([pending], {"plain": order_of("plain")}, [credit_of("plain")]) is None


def test_events_follow_the_message_from_half_message_to_credit() -> None:
    events = events_of(story_of(checks=0), deaths_ms=[])
    assert [event.at_ms for event in events] == [1_000, 1_010, 4_000, 4_000, 4_001, 4_100]
    assert events[2].what == "COMMIT from the producer"


def test_the_death_that_lost_the_commit_stands_between_local_transaction_and_check_back() -> None:
    events = events_of(story_of(checks=1), deaths_ms=[500, 1_200, 3_000, 9_000])
    assert events[2].at_ms == 1_200
    assert events[3].what.startswith("check-back 1:")
