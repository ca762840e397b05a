"""Tests sessions of the page in CPython: the bytes of each round, each button, and the calls from the page's worker."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from demo.play.buttons import BUTTONS
from demo.play.entry import Page
from demo.play.rounds import ROUNDS, Round
from demo.play.session import PlaySession
from demo.play.words import CannotPress
from order_messages import credit_refused
from rocketmq_broker.admin.replay import HISTORIES

SEED = 7
CHINESE = re.compile("[\u4e00-\u9fff]")


@pytest.fixture
def session() -> Iterator[PlaySession]:
    session = PlaySession(SEED)
    yield session
    session.close()


@pytest.fixture
def page() -> Iterator[Page]:
    page = Page()
    yield page
    page.close()


def require_chinese(session: PlaySession) -> None:
    """Asserts that each event of the session also has a Chinese sentence. Responses of the order service stay in English."""
    assert all(
        CHINESE.search(event["text"] + event["who"]) or event["who"] == "Broker" for event in session.state("zh")["events"]
    )
    in_english = [text for text in texts(session) if not text.endswith(("COMMIT", "ROLLBACK"))]
    assert not set(in_english) & {event["text"] for event in session.state("zh")["events"]}
    labels = re.findall(r'class="label"[^>]*>([^<]+)<', session.state("zh")["diagram"])
    assert [label for label in labels if not CHINESE.search(label) and not label.isupper()] == []


def texts(session: PlaySession) -> list[str]:
    return [event["text"] for event in session.state()["events"]]


@pytest.mark.parametrize("each", ROUNDS, ids=lambda each: each.name)
async def test_a_round_ends_as_it_says_with_the_same_bytes_everywhere(each: Round) -> None:
    session = PlaySession(each.seed)
    try:
        session.play(*each.words)
        state = session.state()
        found = (len(state["orders"]), len(state["credits"]), tuple(session.verdict().findings), state["log_bytes"])
        assert found == (each.end.orders, each.end.credits, each.end.findings, each.end.log_bytes)
        assert state["sha256"] == each.end.sha256
        require_chinese(session)
        source = session.test()
    finally:
        session.close()
    names: dict[str, Any] = {}
    exec(compile(source, "test_play.py", "exec"), names)
    await names["test_what_i_did_in_the_page"]()


def test_another_seed_leaves_other_bytes(session: PlaySession) -> None:
    session.play("place")
    other = PlaySession(8)
    other.play("place")
    assert other.state()["sha256"] != session.state()["sha256"]
    other.close()


def test_an_order_is_in_every_part_of_the_state(session: PlaySession) -> None:
    session.play("place:bob:1800", "wait-6")
    state = session.state()
    [order], [credit] = state["orders"], state["credits"]
    assert (order["customer"], order["total_cents"], order["transaction"]) == ("bob", 1800, "COMMITTED")
    assert (credit["order_id"], credit["points"]) == (order["order_id"], 18)
    assert state["balances"] == [{"customer": "bob", "points": 18}]
    assert [record["kind"] for record in state["log"]] == ["half", "message", "op"]
    assert all(record["is_durable"] for record in state["log"])
    assert sum(queue["max"] for queue in state["queues"] if queue["topic"] == "orders") == 1
    assert state["diagram"].startswith("<div")
    assert "half message" in state["diagram"]
    assert "半消息" in session.state("zh")["diagram"]
    assert (state["words"], state["seed"]) == (["place:bob:1800", "wait-6"], SEED)
    assert state["verdict"]["is_consistent"]
    assert not state["pending"]


def test_a_lost_commit_is_pending_until_the_check_back(session: PlaySession) -> None:
    session.play("lose-commit", "place")
    state = session.state()
    assert [one["keys"] for one in state["pending"]] == [[state["orders"][0]["order_id"]]]
    assert state["verdict"]["is_consistent"]
    assert "on the way" in state["verdict"]["text"]
    session.play("wait-6")
    assert not session.state()["pending"]
    assert len(session.state()["credits"]) == 1


def test_held_check_backs_arrive_when_they_are_released(session: PlaySession) -> None:
    session.play("hold-checks", "lose-commit", "place", "wait-60")
    assert len(session.state()["pending"]) == 1
    session.play("release-checks", "wait-6")
    assert not session.state()["pending"]


def test_an_hour_passes_while_the_order_service_is_dead(session: PlaySession) -> None:
    session.play("die-before-commit", "place", "wait-3600")
    state = session.state()
    assert len(state["pending"]) == 1
    assert not state["is_shop_running"]
    assert state["elapsed_s"] > 3600
    session.play("start-shop", "wait-60")
    assert len(session.state()["credits"]) == 1


def test_a_dead_broker_keeps_its_log_and_refuses_orders(session: PlaySession) -> None:
    session.play("place", "wait-6", "kill", "place")
    state = session.state()
    assert not state["is_running"]
    assert len(state["log"]) == 3
    assert len(state["orders"]) == 1
    assert any(text.startswith("POST /orders answers 503") for text in texts(session))
    assert state["diagram"]
    session.play("restart", "wait-6", "place")
    assert len(session.state()["credits"]) == 2


def test_a_full_disk_refuses_orders_until_it_is_free(session: PlaySession) -> None:
    session.play("fill-disk", "wait-60", "place", "free-disk", "wait-60", "place")
    assert len(session.state()["orders"]) == len(session.state()["credits"]) == 1


def test_cut_connections_are_made_again(session: PlaySession) -> None:
    session.play("place", "cut", "place", "wait-6")
    assert len(session.state()["credits"]) == 2


def test_apaches_broker_is_imitated(session: PlaySession) -> None:
    session.play("as-apache", "lose-commit", "place", "wait-60", "wait-60")
    assert len(session.state()["credits"]) == 1
    assert next(button["is_on"] for button in session.state()["buttons"] if button["name"] == "as-apache")


def test_apaches_broker_delivers_at_a_commit_after_a_check_back_too(session: PlaySession) -> None:
    session.play("as-apache", "hold-checks", "slow", "place", "release-checks")
    assert [record["kind"] for record in session.state()["log"]].count("message") == 2
    assert len(session.state()["credits"]) == 1
    assert session.verdict().findings == ["doubled_delivery"]


def test_a_power_failure_leaves_what_was_synced(session: PlaySession) -> None:
    session.play("place", "power", "restart", "wait-60")
    assert [record["kind"] for record in session.state()["log"]] == ["half", "message", "op"]


def test_an_order_that_the_service_refuses_is_an_event(session: PlaySession) -> None:
    session.play("place:bob:0")
    assert not session.state()["orders"]
    assert any("POST /orders answers 4" in text for text in texts(session))


def test_a_message_sent_inside_the_transaction_is_not_lost_but_has_no_half_message(session: PlaySession) -> None:
    session.play("mistake-send-inside", "place", "wait-60")
    assert [record["kind"] for record in session.state()["log"]] == ["message"]
    assert len(session.state()["credits"]) == 1


def test_each_button_is_listed_in_both_languages_and_some_can_be_pressed(session: PlaySession) -> None:
    english, chinese = session.state("en")["buttons"], session.state("zh")["buttons"]
    assert [button["name"] for button in english] == list(BUTTONS)
    assert {button["group"] for button in english} == {"order", "time", "broker", "service", "mistake"}
    assert all(one["label"] != other["label"] for one, other in zip(english, chinese, strict=True))
    assert next(button["arguments"] for button in english if button["name"] == "place") == {"customer": "alice", "amount": 2599}


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("dance", {}, "unknown button dance"),
        ("place", {"colour": "red"}, "place has no argument colour"),
        ("place", {"amount": "25.99"}, "amount must have the type of 2599, not be '25.99'"),
        ("restart", {}, "restart cannot be pressed now"),
        ("start-shop", {}, "start-shop cannot be pressed now"),
        ("deliver-twice", {}, "no offsets of the credit service yet"),
    ],
)
def test_a_button_that_cannot_be_pressed_changes_nothing(
    session: PlaySession, name: str, arguments: dict[str, Any], problem: str
) -> None:
    before = session.state()
    with pytest.raises(CannotPress, match=problem):
        session.press(name, **arguments)
    assert session.state() == before


def arrows(session: PlaySession) -> list[str]:
    """Returns the labels of the latest order's diagram from top to bottom."""
    return re.findall(r'class="label"[^>]*>([^<]+)<', session.state()["diagram"])


def lanes(session: PlaySession) -> list[str]:
    return re.findall(r'class="name"[^>]*>([^<]+)<', session.state()["diagram"])


def test_the_diagram_shows_both_services_and_the_broker_from_the_first_order(session: PlaySession) -> None:
    session.play("place")
    assert lanes(session) == ["order_service", "broker", "credit_service"]
    assert arrows(session) == ["half message", "local commit", "COMMIT", "message", "inbox", "25 points"]
    session.play("wait-6", "deliver-twice")
    assert arrows(session)[6:] == ["message again", "inbox", "no change"]
    assert lanes(session) == ["order_service", "broker", "credit_service"]


def test_the_diagram_shows_the_decision_that_was_lost_and_the_process_that_died(session: PlaySession) -> None:
    session.play("lose-commit", "place")
    assert arrows(session) == ["half message", "local commit", "COMMIT"]
    assert session.state()["diagram"].count('class="cross"') == 1
    session.play("die-before-commit", "place")
    assert arrows(session) == ["half message", "local commit", "the process dies"]
    assert lanes(session) == ["order_service", "broker", "credit_service"]


def test_a_credit_that_is_refused_cancels_its_order(session: PlaySession) -> None:
    session.play("place:bob:900", "refuse-credit", "place")
    state = session.state()
    assert [order["state"] for order in state["orders"]] == ["PLACED", "CANCELLED"]
    assert [(entry["kind"], entry["points"]) for entry in state["credits"]] == [("credit", 9), ("credit", 0), ("reversal", 0)]
    assert (state["verdict"]["is_consistent"], state["verdict"]["text"][-14:]) == (True, "was cancelled.")
    assert arrows(session) == [
        "half message", "local commit", "COMMIT", "message", "inbox", "refused", "credit refused", "credit refused",
        "half message", "local commit: CANCELLED", "COMMIT", "message", "inbox", "no change",
    ]  # fmt: skip
    senders = {event["who"] for event in state["events"] if event["text"].endswith("credit_refusals")}
    assert senders == {"order service", "credit service"}


def test_an_order_that_has_its_credit_is_not_refused_when_it_is_delivered_again(session: PlaySession) -> None:
    session.play("place", "wait-6", "refuse-credit", "deliver-twice")
    assert [order["state"] for order in session.state()["orders"]] == ["PLACED"]
    assert not session.state()["inbox"]
    session.play("place")
    assert [order["state"] for order in session.state()["orders"]] == ["PLACED", "CANCELLED"]
    assert session.verdict().is_consistent


def test_a_credit_is_refused_after_a_check_back_has_committed_its_order(session: PlaySession) -> None:
    session.play("refuse-credit", "hold-checks", "die-before-commit", "place", "start-shop", "release-checks", "wait-6")
    assert [order["state"] for order in session.state()["orders"]] == ["CANCELLED"]
    session.play(
        "hold-checks", "refuse-credit", "lose-commit", "place", "die-before-commit", "place", "release-checks", "wait-60"
    )
    assert [order["state"] for order in session.state()["orders"]] == ["CANCELLED", "PLACED", "PLACED"]
    session.play("start-shop", "wait-60")
    assert sorted(order["state"] for order in session.state()["orders"]) == ["CANCELLED", "CANCELLED", "PLACED"]
    assert session.verdict().is_consistent


def test_a_cancellation_that_fails_is_tried_again(session: PlaySession) -> None:
    session.play("refuse-credit", "lose-commit", "place", "slow", "wait-6")
    session.play("wait-6")
    assert [order["state"] for order in session.state()["orders"]] == ["CANCELLED"]
    assert (
        arrows(session).count("half message") == 3
    )  # of the order, of a cancellation that a check-back rolled back, and of another
    assert session.verdict().is_consistent


def refusals(session: PlaySession) -> int:
    return sum(record["topic"] == credit_refused.TOPIC for record in session.state()["log"])


def test_a_refusal_that_the_broker_does_not_take_waits_in_the_outbox(session: PlaySession) -> None:
    session.play("refuse-credit", "place", "wait-6", "fill-disk", "deliver-twice", "wait-6")
    assert refusals(session) == 1
    session.play("free-disk", "wait-60")
    assert refusals(session) == 2
    assert arrows(session)[-2:] == ["credit refused", "credit refused"]
    assert arrows(session).count("credit refused") == 4  # the attempts in between are one arrow
    assert [order["state"] for order in session.state()["orders"]] == ["CANCELLED"]


def test_the_cancellation_whose_commit_is_lost_is_completed_by_a_check_back(session: PlaySession) -> None:
    session.play("place", "refuse-credit", "hold-checks", "lose-commit", "place", "release-checks", "lose-commit", "wait-6")
    session.play("wait-60")
    assert sorted(order["state"] for order in session.state()["orders"]) == ["CANCELLED", "PLACED"]
    assert not session.state()["pending"]
    assert session.verdict().is_consistent


def test_each_order_has_its_diagram(session: PlaySession) -> None:
    session.play("lose-commit", "place:alice:100", "place:bob:200", "wait-6")
    first, second = (order["order_id"] for order in session.state()["orders"])
    assert session.diagram(second) == session.state()["diagram"]
    assert "check-back 1" in session.diagram(first)
    assert "回查" in session.diagram(first, "zh")
    with pytest.raises(CannotPress, match="no transaction with the id or order id order-9"):
        session.diagram("order-9")
    session.play("kill")
    with pytest.raises(CannotPress, match="the broker is down"):
        session.diagram(first)


def test_a_record_is_shown_field_by_field(session: PlaySession) -> None:
    session.play("place")
    state = session.state()
    record = session.record(state["log"][1]["offset"])
    assert [field["name"] for field in record["fields"]][:3] == ["TOTALSIZE", "MAGICCODE", "BODYCRC"]
    assert sum(len(bytes.fromhex(field["hex"])) for field in record["fields"]) == record["size"] == state["log"][1]["size"]
    with pytest.raises(CannotPress, match="no record begins at commit log offset 3"):
        session.record(3)


def call(page: Page, **request: object) -> dict[str, Any]:
    answer = json.loads(page.call(json.dumps(request)))
    assert isinstance(answer, dict)
    return answer


def test_the_worker_calls_one_function_with_json(page: Page) -> None:
    assert "no session" in call(page, do="state")["error"]
    assert call(page, do="start", seed=SEED) == {"result": None}
    assert call(page, do="press", button="lose-commit") == {"result": None}
    assert call(page, do="play", words=["place:bob:900", "wait-6"]) == {"result": None}
    state = call(page, do="state", language="zh")["result"]
    assert state["words"] == ["lose-commit", "place:bob:900", "wait-6"]
    assert state["verdict"]["is_consistent"]
    assert call(page, do="record", offset=0)["result"]["fields"]
    assert call(page, do="diagram", word=state["orders"][0]["order_id"])["result"].startswith("<div")
    assert "lose_next_decision" in call(page, do="test")["result"]
    assert len(call(page, do="rounds", language="zh")["result"]) == len(ROUNDS)
    assert call(page, do="start", seed=8) == {"result": None}
    assert call(page, do="state")["result"]["words"] == []


def test_apaches_check_is_replayed_without_a_session_in_both_languages(page: Page) -> None:
    first, second = (call(page, do="replay", language=language)["result"] for language in ("en", "zh"))
    assert first["history"] == second["history"] == next(iter(HISTORIES))
    assert '<td>messages in the half topic</td><td class="number">16</td><td class="number">1</td>' in first["html"]
    assert "半消息主题中的消息" in second["html"]
    assert "half message of" not in second["html"]


@pytest.mark.parametrize("history", HISTORIES)
def test_each_history_of_check_has_its_address_and_its_diagram(page: Page, history: str) -> None:
    shown = call(page, do="replay", history=history, language="en")["result"]
    others = set(HISTORIES) - {history}
    assert set(re.findall(r'href="#replay=([\w-]+)"', shown["html"])) == others
    assert (shown["history"], shown["html"].count("<svg")) == (history, 1)


def test_an_unknown_history_is_refused_with_a_sentence(page: Page) -> None:
    assert call(page, do="replay", history="none") == {"error": "history not found: none"}


def test_an_error_is_one_sentence(page: Page) -> None:
    assert call(page, do="start", seed="x")["error"].startswith("ValueError: invalid literal")
    call(page, do="start", seed=SEED)
    assert call(page, do="dance") == {"error": "unknown call 'dance'"}
    assert json.loads(page.call("{"))["error"].startswith("JSONDecodeError")
