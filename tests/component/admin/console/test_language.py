"""Tests of the console's language switch."""

import re

from rocketmq_broker.client import Message
from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.console.visitor import PAGE_OF_CONSOLE, Visitor
from tests.unit.testing.listeners import UNKNOWN, Transactions


def test_the_link_switches_to_chinese_and_back_and_the_page_stays(visitor: Visitor) -> None:
    assert 'href="?all=yes&amp;lang=zh" lang="zh" hreflang="zh">中文</a>' in visitor.html("/topics?all=yes")
    switched = visitor.client.get("/topics?all=yes&lang=zh")
    assert switched.url.path == "/topics"
    assert switched.url.query == b"all=yes"
    assert '<html lang="zh">' in switched.text
    assert "<title>主题 - rocketmq-broker</title>" in switched.text
    assert "No problems found" in visitor.sees("/?lang=en")
    assert visitor.client.cookies["console-language"] == "en"


def test_a_transaction_is_shown_and_decided_in_chinese(rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
    producer = rocketmq.transaction_producer("shops", Transactions(UNKNOWN, UNKNOWN))
    sent = producer.send_message_in_transaction(Message.of("orders", "No problems found.", keys=["pending"]))
    page = f"/transaction?word={sent.transaction_id}"
    seen = visitor.sees(f"{page}&lang=zh")
    assert "人工决定" in seen
    assert "悬而未决" in seen
    assert "pending" in visitor.sees("/pending")  # the key of a message is no word of the console
    said = visitor.posts(page, "/transaction/decide", decision="COMMIT", reason="客户已付款", is_sure="yes")
    assert re.search("committed.shops 在半消息偏移量 0 处的事务.*客户已付款", said)
    assert "已提交" in visitor.sees("/decided")
    assert "No problems found." in visitor.sees("/messages?word=pending&topic=orders")


def test_a_language_that_the_console_lacks_changes_nothing(visitor: Visitor) -> None:
    assert "No problems found" in visitor.sees("/?lang=tlh")
    visitor.client.cookies.set("console-language", "tlh")
    assert "No problems found" in visitor.sees("/")


def test_the_switch_leads_to_no_other_host(visitor: Visitor) -> None:
    answer = visitor.client.get(f"{PAGE_OF_CONSOLE}//elsewhere.example/?lang=zh", follow_redirects=False)
    assert "location" not in answer.headers


def test_an_error_is_told_in_chinese(visitor: Visitor) -> None:
    visitor.sees("/?lang=zh")
    assert "没有这个页面。" in visitor.sees("/nowhere", status=404)
