"""Tests the page of a world: its first sentences, shown and folded rows, and that no text of a world becomes HTML."""

import hashlib
import re
from base64 import b64encode
from dataclasses import replace

import pytest

from rocketmq_broker.testing.simulation.page import BrokenPromise, ReportedEvent, ReportedKind, WorldReport, page_of
from tests.unit.testing.simulation.read_page import read_page, shown_rows, text_of
from tests.unit.testing.simulation.world_reports import LAST_FAULT, ORDER, at, failed_world, others, world_without_the_last_fault


def empty_world(*happenings: ReportedEvent, lanes: tuple[str, ...] = ("a", "b", "c")) -> WorldReport:
    return WorldReport(seed=1, title="small", lanes=lanes, happenings=happenings)


def test_the_first_sentences_say_which_promise_broke_for_which_order_and_after_which_faults() -> None:
    verdict = text_of(read_page(page_of(failed_world())).first("verdict"))
    assert verdict.startswith("The promise “Each stored order gets its credit once” broke at 1:21.380: order-17 has two credits.")
    assert (
        "Before that, 4 faults happened: COMMIT of order-17 is lost (0:03.028), kill -9 of broker-a (0:09.300), the answer"
        " “consumed” is lost (1:11.340) and the barrier row is taken out of the credit database (1:15.000)."
    ) in verdict


def test_the_first_promise_that_broke_is_told_first_whatever_the_order_of_the_violations() -> None:
    world = failed_world()
    turned = replace(world, violations=world.violations[::-1])
    assert page_of(world).split("<h2")[0] == page_of(turned).split("<h2")[0]


def test_the_order_of_a_broken_promise_is_named_if_the_finding_does_not_name_it() -> None:
    world = replace(failed_world(), violations=(BrokenPromise("P", "two credits", 81_380_000_000, (ORDER,)),))
    assert "broke at 1:21.380 for order-17: two credits." in text_of(read_page(page_of(world)).first("verdict"))


def test_a_world_that_keeps_its_promises_says_so() -> None:
    page = read_page(page_of(world_without_the_last_fault()))
    assert text_of(page.first("verdict")).startswith("Every promise held in this world. In it, 3 faults happened:")
    assert page.ids("broken") == []


def test_a_world_in_which_nothing_happened_has_a_page() -> None:
    verdict = text_of(read_page(page_of(empty_world())).first("verdict"))
    assert verdict.startswith("Every promise held in this world. In it, no fault happened.")


def test_each_link_of_a_page_leads_to_one_place_of_it() -> None:
    page = read_page(page_of(failed_world(), world_without_the_last_fault()))
    targets = [link.attributes["href"] for link in page.all_tags("a")]
    assert "#broken" in targets
    assert {target: len(page.ids(target[1:])) for target in targets} == dict.fromkeys(targets, 1)


def test_two_equal_happenings_at_one_moment_have_a_place_each() -> None:
    twice = at(1, "a", "row", "stored")
    page = read_page(page_of(empty_world(twice, twice)))
    assert [row.attributes["id"] for row in shown_rows(page)] == ["h0", "h1"]


def test_the_lanes_show_the_broken_order_with_faults_and_deaths_and_no_other_order() -> None:
    rows = [text_of(row) for row in shown_rows(read_page(page_of(failed_world())))]
    assert "1:11.331 worker → credit database credit 1 of order-17: 12 points" in rows
    assert "0:09.300 broker-a DEAD broker-a dies: its memory is gone" in rows
    assert f"1:15.000 credit database FAULT {LAST_FAULT}" in rows
    assert [row for row in rows if "order-40" in row or "412 bytes" in row] == []


def test_a_happening_that_shares_only_the_message_id_belongs_to_the_order() -> None:
    rows = [text_of(row) for row in shown_rows(read_page(page_of(failed_world())))]
    assert "1:11.320 redis → worker task for order-17" in rows


def test_the_first_start_of_a_process_is_no_news_and_its_second_one_is() -> None:
    rows = [text_of(row) for row in shown_rows(read_page(page_of(failed_world())))]
    assert [row for row in rows if " starts" in row] == ["0:14.300 broker-a broker-a starts again, and reads its log"]


def test_what_happens_to_the_whole_world_is_shown() -> None:
    world = replace(failed_world(), happenings=(at(1, "", "error", "a task failed"), *failed_world().happenings))
    assert text_of(shown_rows(read_page(page_of(world)))[0]) == "0:01.000 a task failed"


def test_what_is_left_out_is_counted_by_kind_and_opens_to_a_list() -> None:
    folds = [text_of(fold) for fold in read_page(page_of(failed_world())).all("fold")]
    assert folds[1].startswith("… 6 s … 40 others (answer 10, flush 10, request 10, row 10)")
    assert "0:03.176 customers → orders-1: places order-40" in folds[1]


def test_a_long_wait_in_which_nothing_happened_is_a_mark() -> None:
    folds = [text_of(fold) for fold in read_page(page_of(failed_world())).all("fold")]
    assert "… 57 s …" in folds


def test_a_short_wait_in_which_nothing_happened_leaves_no_mark() -> None:
    page = read_page(page_of(empty_world(at(1, "a", "row", "one"), at(1.9, "a", "row", "two"))))
    assert page.all("fold") == []


def test_the_same_world_gives_the_same_page() -> None:
    pages = {page_of(failed_world(), world_without_the_last_fault()) for _ in range(2)}
    assert len(pages) == 1


HOSTILE = "</script><script>alert(1)</script><img src=x onerror='a()'>\"&\x1b[31m\u202e\n"


def test_no_text_of_a_world_becomes_a_tag_or_an_attribute() -> None:
    happenings = tuple(
        ReportedEvent(number, process, kind, HOSTILE, (HOSTILE,), to)
        for number, (process, kind, to) in enumerate(
            [(HOSTILE, HOSTILE, HOSTILE), ("a", "fault", HOSTILE), (HOSTILE, "row", None)]
        )
    )
    broken = BrokenPromise(HOSTILE, HOSTILE, 5, (HOSTILE,)), BrokenPromise(HOSTILE, HOSTILE, 6)
    lanes, told = (HOSTILE, "a"), (*happenings, at(9, HOSTILE, HOSTILE, "of others"))
    world = WorldReport(1, HOSTILE, lanes, told, broken, HOSTILE, {HOSTILE: HOSTILE}, HOSTILE)
    plain = replace(world, title="t")
    text = page_of(world, plain)
    page = read_page(text)
    assert [tag.attributes for tag in page.all_tags("script")] == [{}]
    assert page.all_tags("img") == []
    assert {name for tag in page.tags for name in tag.attributes if name.startswith("on")} == set()
    assert [character for character in ("\x1b", "\u202e") if character in text] == []


def test_a_page_asks_no_network_and_runs_no_script_but_its_own() -> None:
    text = page_of(failed_world(), world_without_the_last_fault())
    page = read_page(text)
    policy = page.all_tags("meta")[1].attributes["content"]
    script = text.split("<script>")[1].split("</script>")[0]
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert [tag.name for tag in page.tags if {"src", "data", "srcset"} & set(tag.attributes)] == []
    assert re.findall(r"url\(|@import|https?:", text) == []


def test_a_page_of_five_thousand_happenings_stays_below_a_megabyte() -> None:
    many = tuple(others(100, 100.0, 2_000.0, 5_000))
    world = failed_world()
    big = replace(world, happenings=(*world.happenings, *many))
    text = page_of(big, replace(big, violations=()))
    assert len(text.encode()) < 1_000_000
    assert text.count("places order-") == 1_250 + 38


def test_a_page_of_five_thousand_happenings_of_one_order_shows_its_begin_and_its_end() -> None:
    happenings = tuple(at(number, "a", "row", f"step {number} <&>" + "é" * 300, ORDER) for number in range(5_000))
    world = replace(empty_world(*happenings), violations=(BrokenPromise("P", "broken", 5_000_000_000_000, (ORDER,)),))
    text = page_of(world, replace(world, violations=()))
    rows = [text_of(row) for row in shown_rows(read_page(text))]
    assert len(text.encode()) < 1_000_000
    assert len(rows) == 300
    assert rows[0].startswith("0:00.000 a step 0 ")
    assert rows[-2].startswith("1:23:19.000 a step 4999 ")


def test_what_has_no_space_on_the_page_is_counted() -> None:
    many = tuple(at(2 + number / 1000, "a", "flush", "writes " + "x" * 150) for number in range(5_000))
    world = replace(empty_world(*many), violations=(BrokenPromise("P", "broken", 9_000_000_000, (ORDER,)),))
    text = text_of(read_page(page_of(world)).all("fold")[0])
    listed = text.count(" a: writes ")
    assert text.endswith(f"… and {5_000 - listed:,} more")


def test_a_promise_that_broke_without_a_key_shows_what_led_up_to_it() -> None:
    happenings = tuple(at(number, "a", "flush", f"step {number}") for number in range(100))
    world = replace(empty_world(*happenings), violations=(BrokenPromise("P", "broken", 60_000_000_000),))
    rows = [text_of(row) for row in shown_rows(read_page(page_of(world)))]
    assert rows[0] == "0:22.000 a step 22"
    assert rows[-1] == "1:00.000 BROKEN PROMISE “P”: broken"


def test_promises_that_broke_later_are_listed() -> None:
    page = page_of(failed_world())
    assert "<li>1:35.000 “A balance is the sum of the orders.”: ann has 24 points for 12</li>" in page


def test_a_page_ends_with_command_digest_and_plan() -> None:
    text = text_of(read_page(page_of(failed_world())).root)
    assert "make simulate SEED=4711" in text
    assert "5f1e0c6a9b7d43e28f0a6c1d2e3b4a59" in text
    assert '"kind": "lose_commit",' in text


@pytest.mark.parametrize("kind", [*ReportedKind, "something new"])
def test_a_happening_of_each_kind_has_a_colour(kind: str) -> None:
    page = read_page(page_of(empty_world(at(1, "a", kind, "it happens"))))
    (row,) = shown_rows(page)
    colours = set(re.findall(r"\.(k-[a-z]+)[ ,]", page_of(empty_world())))
    assert row.attributes["class"] in colours
