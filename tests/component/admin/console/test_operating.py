"""Forms with which a person sends a message, and creates a topic."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.console.visitor import Visitor


class TestSending:
    def test_a_message_is_sent_with_keys_tag_and_properties(self, rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
        seen = visitor.posts(
            "/send", "/send/message", topic="orders", body="paid\r\nin full", keys="order-1 ada", tag="created",
            properties="colour=red=x\r\n\r\n size=2 ",
        )  # fmt: skip
        (message,) = rocketmq.messages("orders")
        assert (message.body, message.keys, message.tags) == (b"paid\nin full", ("order-1", "ada"), "created")
        assert (message.properties["colour"], message.properties["size"]) == ("red=x", "2")
        assert f"sent: {message.transaction_id} to orders, queue {message.queue_id} at 0" in seen
        assert "order-1 ada created paid" in seen

    @pytest.mark.parametrize(
        ("fields", "sentence"),
        [
            ({"topic": "or ders", "body": "x"}, "illegal characters"),
            ({"topic": "orders", "body": ""}, "needs a body"),
            ({"topic": "RMQ_SYS_TRANS_HALF_TOPIC", "body": "x"}, "is the broker's own"),
            ({"topic": "orders", "body": "x", "properties": "colour"}, "Property colour: NAME=VALUE is expected"),
            ({"topic": "orders", "body": "x", "properties": "UNIQ_KEY=1"}, "UNIQ_KEY"),
        ],
    )
    def test_a_message_that_no_broker_takes_is_refused_with_a_sentence(
        self, fields: Mapping[str, str], sentence: str, rocketmq: SyncRocketMQ, visitor: Visitor
    ) -> None:
        assert sentence in visitor.posts("/send", "/send/message", 404, **fields)
        assert not rocketmq.messages("orders")

    def test_the_form_proposes_the_topic_of_the_page_that_led_to_it(self, rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
        visitor.posts("/topics/new", "/topics/create", topic="orders", queues="2")
        assert 'href="/send?topic=orders"' in visitor.html("/topic?topic=orders")
        assert 'name="topic" value="orders"' in visitor.html("/send?topic=orders")
        assert "<option>orders</option>" in visitor.html("/send")


class TestCreatingATopic:
    def test_it_has_the_queues_that_were_asked_for(self, visitor: Visitor) -> None:
        seen = visitor.posts("/topics/new", "/topics/create", topic="orders", queues="3")
        assert "created: the topic orders with 3 queues at 127.0.0.1:" in seen
        assert "orders 3 0" in visitor.sees("/topics")

    def test_one_that_exists_stays_as_it_is(self, visitor: Visitor) -> None:
        visitor.posts("/topics/new", "/topics/create", topic="orders", queues="3")
        assert "has a topic orders already" in visitor.posts("/topics/new", "/topics/create", 404, topic="orders", queues="8")
        assert "orders 3 0" in visitor.sees("/topics")

    @pytest.mark.parametrize(
        ("fields", "sentence"),
        [
            ({"topic": "", "queues": "1"}, "is blank"),
            ({"topic": "or ders", "queues": "1"}, "illegal characters"),
            ({"topic": "orders", "queues": "0"}, "A topic has 1 to 10000 queues, not 0"),
            ({"topic": "orders", "queues": "10001"}, "A topic has 1 to 10000 queues, not 10001"),
            ({"topic": "orders", "queues": "many"}, "The number of queues is a whole number"),
            ({"topic": "orders", "queues": "1", "broker": "192.0.2.1:10911"}, "No broker at 192.0.2.1:10911 is known here"),
        ],
    )
    def test_what_cannot_be_a_topic_is_refused(self, fields: Mapping[str, str], sentence: str, visitor: Visitor) -> None:
        assert sentence in visitor.posts("/topics/new", "/topics/create", 404, **fields)
        assert "There is no topic of a program yet" in visitor.sees("/topics")


@pytest.mark.parametrize("action", ["/send/message", "/topics/create"])
def test_a_form_without_the_token_of_a_page_changes_nothing(action: str, rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
    fields = {"topic": "orders", "body": "x", "queues": "1"}
    assert visitor.client.post(action, data=fields).status_code == 403
    assert visitor.client.post(action, data=fields, headers={"Origin": "http://evil.example"}).status_code == 403
    assert "There is no topic of a program yet" in visitor.sees("/topics")
