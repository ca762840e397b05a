"""Tests that each page of the console shows the state of the brokers, and that its forms work like the commands."""

import re
from collections.abc import Mapping

import pytest
from starlette.testclient import TestClient

from rocketmq_broker.admin.console import ConsoleSettings, Extension, create_console
from rocketmq_broker.admin.console.live import changes_of
from rocketmq_broker.admin.session import Target
from rocketmq_broker.admin.timeline.event import Event
from rocketmq_broker.client import ConsumeContext, ConsumeStatus, LocalTransactionState, Message, MessageExt
from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.console.visitor import PAGE_OF_CONSOLE, Visitor
from tests.unit.testing.listeners import COMMIT, UNKNOWN, Consumption, InTurn


def order(rocketmq: SyncRocketMQ, *states: LocalTransactionState, body: bytes = b"paid", key: str = "order-1") -> str:
    producer = rocketmq.transaction_producer("shops", InTurn(*states))
    sent = producer.send_message_in_transaction(Message.of("orders", body, keys=[key]))
    return sent.transaction_id or ""


def refuse(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    return ConsumeStatus.RECONSUME_LATER


EVERY_SCREEN = ("/", "/pending", "/discarded", "/dead-letters", "/decided", "/topics", "/groups", "/clients", "/messages")


@pytest.mark.parametrize("path", EVERY_SCREEN)
def test_a_screen_of_a_broker_without_messages_says_that_there_are_none(path: str, visitor: Visitor) -> None:
    seen = visitor.sees(path)
    words = ("No problems found", "No ", "Nothing", "There are no", "There is no", "Find")
    assert any(word in seen for word in words)


def test_a_pending_transaction_is_shown_with_its_countdown_and_who_can_answer(rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
    transaction_id = order(rocketmq, UNKNOWN, UNKNOWN)
    rocketmq.advance(seconds=35)  # the first heartbeat says who is online
    seen = visitor.sees("/pending")
    assert "1 of 1 pending transactions" in seen
    assert transaction_id in seen
    assert "in 30 s 1 of 15" in seen
    assert "shops 1 online" in seen


def test_a_pending_transaction_whose_producer_left_says_that_nobody_is_online(rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
    producer = rocketmq.transaction_producer("shops", InTurn(UNKNOWN))
    producer.send_message_in_transaction(Message.of("orders", b"paid"))
    producer.shutdown()
    assert "none online" in visitor.sees("/pending")


def test_a_transaction_has_its_timeline_as_a_table_and_as_a_picture(rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
    transaction_id = order(rocketmq, UNKNOWN, COMMIT)
    rocketmq.advance(minutes=2)
    seen, html = visitor.sees(f"/transaction?word={transaction_id}"), visitor.html("/transaction?word=order-1")
    assert "committed" in seen
    assert "check-back 1: the broker asks the producer at" in seen
    assert html.count('class="arrow') == 5  # half message, no decision, check-back, answer, visible
    assert 'class="arrow lost"' in html


def test_a_check_back_whose_listener_raises_says_so(rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
    order(rocketmq, UNKNOWN)  # it has no answer to a check-back, and pops from an empty list
    rocketmq.advance(seconds=30)
    assert "answers UNKNOWN: the listener raised IndexError: pop from empty list" in visitor.sees("/transaction?word=order-1")


def test_a_person_decides_a_pending_transaction_by_hand_and_the_reason_is_kept(rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
    order(rocketmq, UNKNOWN)
    page = "/transaction?word=order-1"
    seen = visitor.posts(page, "/transaction/decide", decision="COMMIT", reason="paid in cash", is_sure="yes")
    assert "committed: the transaction at half offset 0 of shops; reason: paid in cash" in seen
    assert "Decide by hand" not in visitor.sees(page)
    assert "paid in cash" in visitor.sees("/decided")
    assert not rocketmq.pending()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"decision": "COMMIT", "is_sure": "yes"}, "The reason is empty"),
        ({"decision": "COMMIT", "reason": "paid"}, "Confirm the decision: it cannot be undone"),
        ({"reason": "paid", "is_sure": "yes"}, "No decision selected: choose COMMIT or ROLLBACK"),
    ],
)
def test_a_decision_without_reason_or_tick_is_refused(
    fields: Mapping[str, str], sentence: str, rocketmq: SyncRocketMQ, visitor: Visitor
) -> None:
    order(rocketmq, UNKNOWN)
    assert sentence in visitor.posts("/transaction?word=order-1", "/transaction/decide", 422, **fields)
    assert rocketmq.pending()


class TestATransactionThatHangs:
    """Tests of a transaction that is still pending after 200 check-backs."""

    @pytest.fixture
    def rocketmq_settings(self) -> Mapping[str, object]:
        return {"transactionCheckMax": 43_200, "transactionTimeOut": 2_000, "transactionCheckInterval": 2_000}

    @pytest.fixture
    def html(self, rocketmq: SyncRocketMQ, visitor: Visitor) -> str:
        order(rocketmq, *[UNKNOWN] * 250, body=b'{"customer": "ada", "total": 1.10}')
        rocketmq.advance(seconds=460)
        return visitor.html("/transaction?word=order-1")

    def test_its_page_is_one_screen(self, html: str) -> None:
        number = int(re.findall(r"check-back 3 to (\d+), every 2 s, answered UNKNOWN, for \d m", html)[0])
        assert number >= 190
        assert len(html) < 20_000
        assert html.count("<") < 500
        assert html.count('class="arrow') < 12
        height = int(re.findall(r'viewBox="0 0 \d+ (\d+)"', html)[0])
        assert height < 700

    def test_the_form_stands_before_the_picture_and_the_body_is_there(self, html: str) -> None:
        assert html.index("Decide by hand") < html.index("<svg class")
        assert "&#34;customer&#34;: &#34;ada&#34;,\n" in html

    def test_its_timeline_is_told_in_chinese(self, html: str, visitor: Visitor) -> None:
        visitor.client.get("/?lang=zh")
        chinese = visitor.html("/transaction?word=order-1")
        steps = re.findall(r'<td class="text">(.*?)</td>\n<td>(.*?)</td>', chinese)
        assert len(steps) == html.count('<td class="text">') > 5
        assert [cell for step in steps for cell in step if not re.search(r"[\u4e00-\u9fff]", cell)] == []
        assert all(re.search(r"[\u4e00-\u9fff]|UNKNOWN", label) for label in re.findall(r'class="label"[^>]*>(.*?)<', chinese))

    def test_a_refresh_sends_what_changed(self, html: str, rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
        rocketmq.advance(seconds=3)
        later = visitor.html("/transaction?word=order-1")
        assert later != html
        assert len(changes_of(html, later) or html) < 4_000


class TestWithOneCheck:
    @pytest.fixture
    def rocketmq_settings(self) -> Mapping[str, object]:
        return {"transactionCheckMax": 1}

    def test_a_discarded_transaction_is_resumed_once(self, rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
        order(rocketmq, UNKNOWN, UNKNOWN)
        rocketmq.advance(minutes=5)
        assert '<a href="/discarded">' in visitor.html("/transaction?word=order-1")
        said = visitor.posts("/discarded", "/discarded/resume")
        assert re.search(r"resumed: [0-9A-F]{32} is pending again at broker \S+, its count of check-backs is 0", said)
        assert rocketmq.pending()
        assert "Resume" not in visitor.sees("/discarded").replace("Resume a message when", "")


class TestDeadLetters:
    @pytest.fixture
    def letter(self, rocketmq: SyncRocketMQ, visitor: Visitor) -> str:
        """Creates the only dead letter of the group `credits`, and returns the path of its page."""
        rocketmq.producer("makers").send(Message.of("orders", b"odd", keys=["order-1"]))
        consumer = rocketmq.consumer("credits", "orders", refuse, max_reconsume_times=0)
        rocketmq.advance(minutes=1)
        consumer.shutdown()
        return "/dead-letter?message=order-1&group=credits"

    def test_it_is_found_by_its_group(self, letter: str, visitor: Visitor) -> None:
        assert "credits 1 1" in visitor.sees("/dead-letters")
        assert "untreated" in visitor.sees("/dead-letters/group?group=credits")
        assert "odd" in visitor.sees(letter)

    def test_it_says_where_the_exception_is(self, letter: str, visitor: Visitor) -> None:
        assert "Look in the consumer group's log" in visitor.sees(letter)

    def test_it_shows_what_witnesses_know_of_the_groups_failure(self, letter: str, rocketmq: SyncRocketMQ) -> None:
        async def witness(message_id: str, keys: list[str]) -> list[Event]:
            return [Event(1, f"{group}: {keys[0]} has no total", f"log of {group}") for group in ("credits", "mails")]

        app = create_console(ConsoleSettings(), Target(rocketmq.namesrv_addr), Extension(witnesses=[witness]))
        with TestClient(app, base_url=PAGE_OF_CONSOLE) as client:
            seen = Visitor(client).sees(letter)
        assert "credits: order-1 has no total" in seen
        assert "mails" not in seen

    def test_it_is_dismissed_with_a_reason(self, letter: str, visitor: Visitor) -> None:
        seen = visitor.posts(letter, "/dead-letter/dismiss", reason="a test order")
        assert "reason: a test order" in seen
        assert "credits 0 1" in visitor.sees("/dead-letters")

    def test_it_is_not_dismissed_without_a_reason(self, letter: str, visitor: Visitor) -> None:
        assert "The reason is empty" in visitor.posts(letter, "/dead-letter/dismiss", 422)
        assert "credits 1 1" in visitor.sees("/dead-letters")

    def test_it_is_retried_once_and_again_only_if_asked(self, letter: str, visitor: Visitor) -> None:
        assert "once more (retry 1)" in visitor.posts(letter, "/dead-letter/retry", reason="mended")
        assert "already retried" in visitor.posts(letter, "/dead-letter/retry", 422)
        assert "once more (retry 2)" in visitor.posts(letter, "/dead-letter/retry", again="yes")


def test_topics_and_groups_are_shown_with_what_they_hold_and_their_lag(rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
    rocketmq.producer("makers").send(Message.of("orders", b"one", keys=["order-1"], tags="created"))
    consumer = rocketmq.consumer("credits", "orders", Consumption())
    rocketmq.advance(minutes=1)
    assert "orders" in visitor.sees("/topics")
    assert "%RETRY%credits" in visitor.sees("/topics?all=yes")
    assert "credits" in visitor.sees("/topic?topic=orders")
    assert "order-1 created one" in visitor.sees("/topic/tail?topic=orders")
    assert "credits 1 0" in visitor.sees("/groups")
    assert consumer.group in visitor.sees("/group?group=credits")
    assert "Producers" in visitor.sees("/clients")
    assert "credits" in visitor.sees("/clients")


def test_a_group_whose_members_subscribe_to_different_messages_is_marked(rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
    order(rocketmq, COMMIT)
    rocketmq.producer("refunders").create_topic("refunds")
    for topic in ("orders", "refunds"):
        rocketmq.consumer("credits", topic, Consumption(), instance_name=topic)
    rocketmq.advance(minutes=1)
    assert "subscriptions differ" in visitor.sees("/groups")
    seen = visitor.sees("/group?group=credits")
    assert "members of the consumer group credits subscribe to different messages" in seen
    assert "Give all members of the group the same subscriptions" in seen


def test_a_message_is_found_by_its_key_with_who_has_consumed_it(rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
    rocketmq.consumer("credits", "orders", Consumption())
    order(rocketmq, COMMIT)
    rocketmq.advance(minutes=1)
    seen = visitor.sees("/messages?word=order-1&topic=orders")
    assert "paid" in seen
    assert "credits has consumed it" in seen
    assert "transaction" in seen


def test_the_bytes_of_a_half_message_are_shown_with_each_field_marked(rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
    order(rocketmq, UNKNOWN)
    seen = visitor.sees("/record?offset=0")
    assert "MAGICCODE 4 4 0xdaa320a7" in seen
    assert "TOPIC" in seen
    assert "RMQ_SYS_TRANS_HALF_TOPIC" in seen


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/transaction?word=order-9", "Transaction not found: order-9."),
        ("/topic?topic=nowhere", "Topic not found: nowhere."),
        ("/group?group=nobody", "The consumer group nobody has no offsets and no members"),
        ("/record?offset=0&broker=192.0.2.1:10911", "Unknown broker 192.0.2.1:10911."),
        ("/dead-letter?message=x", "Dead letter not found: x."),
        ("/nowhere", "Page not found."),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(path: str, sentence: str, visitor: Visitor) -> None:
    assert sentence in visitor.sees(path, 404)


def test_what_strangers_wrote_is_text_and_never_markup(rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
    order(rocketmq, UNKNOWN, body=b"<script>alert(1)</script>\x1b[2J", key="<img/src=x>")
    for path in ("/pending", "/record?offset=0", "/transaction?word=%3Cimg/src=x%3E"):
        html = visitor.html(path)
        assert "<script>alert" not in html
        assert "<img/src" not in html
        assert "\x1b" not in html


def test_a_broker_that_is_gone_is_said_in_a_sentence(rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
    rocketmq.crash()
    seen = visitor.sees("/pending", 503)
    assert "Reload this page to try again" in seen
    assert "Traceback" not in seen


def test_apaches_check_is_replayed_beside_this_brokers(visitor: Visitor) -> None:
    seen = visitor.sees("/check-replayed")
    assert "messages in the half topic 16 1" in seen
    assert "deliveries 2 1" in visitor.sees("/check-replayed?history=late-commit")
    assert "0=0, 2=1 0, 1 1 → 4 (TRANSACTION_CHECK_TIMES 1) 3 2 5 4" in visitor.sees("/check-replayed?history=two-offsets")


def test_a_history_that_is_not_there_is_not_found(visitor: Visitor) -> None:
    assert "History not found: none." in visitor.sees("/check-replayed?history=none", 404)
