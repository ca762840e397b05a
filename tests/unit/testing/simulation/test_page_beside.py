"""Tests the page that compares a world with the same world without its last fault: differences are marked."""

from dataclasses import replace

from rocketmq_broker.testing.simulation.page import BrokenPromise, ReportedEvent, page_of
from rocketmq_broker.testing.simulation.page.comparing import Pair, pairs_of
from tests.unit.testing.simulation.read_page import read_page, shown_rows, text_of
from tests.unit.testing.simulation.world_reports import LAST_FAULT, ORDER, at, failed_world, world_without_the_last_fault


def pairs_in(text: str, class_name: str = "differs") -> list[str]:
    return [text_of(pair) for pair in read_page(text).all(class_name)]


def test_the_happenings_that_differ_are_marked_in_both_columns() -> None:
    assert pairs_in(page_of(failed_world(), world_without_the_last_fault())) == [
        f"1:15.000 credit database FAULT {LAST_FAULT} nothing",
        "1:21.372 worker → credit database credit 2 of order-17: 12 points"
        " 1:21.371 worker → credit database barrier row exists: no second credit",
        "1:21.380 BROKEN PROMISE “Each stored order gets its credit once”: order-17 has two credits nothing",
        "1:35.000 BROKEN PROMISE “A balance is the sum of the orders”: ann has 24 points for 12 nothing",
    ]


def test_the_lanes_mark_what_the_world_beside_lacks() -> None:
    page = read_page(page_of(failed_world(), world_without_the_last_fault()))
    marked = [row.attributes["class"] for row in shown_rows(page) if "only" in row.classes]
    assert marked == ["k-fault only", "k-row only", "k-violation only", "k-violation only"]


def test_a_page_without_a_world_beside_marks_nothing() -> None:
    page = read_page(page_of(failed_world()))
    assert (page.all("only"), page.all("differs"), page.ids("beside")) == ([], [], [])


def test_what_both_worlds_share_is_folded_into_a_count() -> None:
    text = page_of(failed_world(), world_without_the_last_fault())
    assert "… 16 events in both worlds …" in text


def test_the_verdict_names_the_fault_that_makes_the_difference() -> None:
    verdict = text_of(read_page(page_of(failed_world(), world_without_the_last_fault())).first("verdict"))
    assert f"Without the last fault, “{LAST_FAULT}”, the same world keeps every promise." in verdict


def test_the_verdict_says_if_the_world_beside_breaks_a_promise_too() -> None:
    beside = replace(world_without_the_last_fault(), violations=(BrokenPromise("P.", "it broke.", 1_000_000, (ORDER,)),))
    verdict = text_of(read_page(page_of(failed_world(), beside)).first("verdict"))
    assert "the promise “P” breaks at 0:00.001 in the same world: it broke. Go to" in verdict


def test_the_columns_end_with_the_verdict_of_each_world() -> None:
    assert pairs_in(page_of(failed_world(), world_without_the_last_fault()), "ends") == [
        "2 broken promises. Every promise holds."
    ]


def test_a_shift_of_time_makes_no_difference() -> None:
    late = ReportedEvent(2_000_000_000, "a", "row", "stored")
    assert pairs_of([replace(late, at_ns=1)], [late]) == [Pair(replace(late, at_ns=1), late, True)]


def test_another_id_in_keys_and_text_makes_no_difference() -> None:
    here, beside = (at(1, "a", "send", f"message {key} of it", key) for key in ("0A01", "0A02"))
    assert [pair.is_same for pair in pairs_of([here], [beside])] == [True]


def test_another_text_process_receiver_or_kind_makes_a_difference() -> None:
    here = at(1, "a", "send", "message", to="b")
    others = [replace(here, text="x"), replace(here, process="x"), replace(here, to="x"), replace(here, kind="x")]
    assert [pairs_of([here], [other])[0].is_same for other in others] == [False] * 4


def test_a_happening_without_a_partner_stands_alone() -> None:
    one, two = at(1, "a", "row", "one"), at(2, "a", "row", "two")
    assert pairs_of([one, two], [two]) == [Pair(one, None, False), Pair(two, two, True)]
