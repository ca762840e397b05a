"""Tests that the target of each link exists, for each kind of finding and in both languages."""

import re
from collections.abc import Mapping
from html import unescape

import pytest

from rocketmq_broker.client import Message
from rocketmq_broker.testing import SyncRocketMQ
from tests.component.admin.console.test_screens import order, refuse
from tests.component.admin.test_in_hand import pop
from tests.unit.admin.console.visitor import Visitor
from tests.unit.testing.listeners import COMMIT, UNKNOWN, InTurn

FINDINGS = {
    "abandoned": "cannot be checked back, because no producer of leavers is online",
    "discarded": "discarded messages of losers need an operator",
    "dead-letters": "2 dead letters of mails need an operator",
    "again": "The group credits receives messages repeatedly",
    "fine": "It answers and uses the protocol of",
}
"""The problems at the broker of these tests, and a finding that needs no action."""


@pytest.fixture
def rocketmq_settings() -> Mapping[str, object]:
    return {"transactionCheckMax": 1}


@pytest.fixture
def troubled(rocketmq: SyncRocketMQ, visitor: Visitor) -> SyncRocketMQ:
    """Returns a broker with messages in all states that need an operator, and with messages that an operator has handled."""
    for number in range(3):
        producer = rocketmq.transaction_producer("losers", InTurn(UNKNOWN, UNKNOWN))
        producer.send_message_in_transaction(Message.of("orders", b"lost", keys=[f"lost-{number}"]))
    for number in range(3):
        rocketmq.producer("makers").send(Message.of("letters", b"\xff odd", keys=[f"letter-{number}"], tags="t"))
    rocketmq.consumer("mails", "letters", refuse, max_reconsume_times=0)
    rocketmq.producer("makers").send(Message.of("orders", b"again", keys=["again"]))
    pop(rocketmq)
    for _ in range(4):
        rocketmq.advance(seconds=31)
        pop(rocketmq)
    rocketmq.advance(minutes=5)
    visitor.posts("/discarded", "/discarded/resume")
    visitor.posts("/dead-letter?message=letter-0&group=mails", "/dead-letter/dismiss", reason="odd")
    order(rocketmq, COMMIT, key="paid")
    order(rocketmq, UNKNOWN, key="by-hand")
    visitor.posts("/transaction?word=by-hand", "/transaction/decide", decision="ROLLBACK", reason="late", is_sure="yes")
    left = rocketmq.transaction_producer("leavers", InTurn(UNKNOWN))
    left.send_message_in_transaction(Message.of("orders", b"paid", keys=["left"]))
    left.shutdown()
    for _ in range(4):
        rocketmq.advance(seconds=31)
        pop(rocketmq)
    order(rocketmq, UNKNOWN, UNKNOWN, key="open")
    return rocketmq


def test_the_overview_shows_each_kind_of_finding(troubled: SyncRocketMQ, visitor: Visitor) -> None:
    seen = visitor.sees("/")
    assert [kind for kind, words in FINDINGS.items() if words not in seen] == []
    assert '<a href="/dead-letters">' in visitor.html("/")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_link_of_each_page_leads_to_a_page(language: str, troubled: SyncRocketMQ, visitor: Visitor) -> None:
    first = f"/?lang={language}"
    pages, waiting, failed = {first}, [first], {}
    while waiting:
        path = waiting.pop()
        answer = visitor.client.get(path)
        if answer.status_code != 200:
            failed[path] = answer.status_code
        found = {unescape(href) for href in re.findall(r'href="(/[^"]*)"', answer.text)}
        fresh = {href for href in found if not href.startswith("/static/")} - pages
        pages |= fresh
        waiting += sorted(fresh)
    assert failed == {}
    assert len(pages) > 40


class TestOfABrokerThatRefuses:
    ALERTS = (
        "It refuses all messages (brokerPermission=0)",
        "It refuses all pulls (brokerPermission=0)",
        "It refuses half messages (rejectTransactionMessage=true)",
        "Its disk is 100 % full: above 90 % it refuses new messages",
    )

    @pytest.fixture
    def rocketmq_settings(self) -> Mapping[str, object]:
        return {"rejectTransactionMessage": "true", "brokerPermission": 0}

    @pytest.mark.parametrize("language", ["en", "zh"])
    def test_each_refusal_is_an_alert_of_the_overview(self, language: str, rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
        rocketmq.fill_disk()
        alerts = re.findall(r'<div class="trouble" role="alert">(.*?)</div>', visitor.html(f"/?lang={language}"), re.DOTALL)
        assert len(alerts) == len(self.ALERTS)
        assert [words for words in self.ALERTS if not any(words in alert for alert in alerts)] == []
