"""Tests of the console's forms, which send a message, create a topic, and reset a consumer group."""

from collections.abc import Mapping

import pytest

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, Message, MessageExt
from rocketmq_broker.client.listeners import MessageListener
from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.console.visitor import Visitor, hidden_fields


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
            ({"topic": "orders", "body": ""}, "must not be empty"),
            ({"topic": "RMQ_SYS_TRANS_HALF_TOPIC", "body": "x"}, "is reserved for the broker"),
            ({"topic": "orders", "body": "x", "properties": "colour"}, "Invalid property colour: expected NAME=VALUE"),
            ({"topic": "orders", "body": "x", "properties": "UNIQ_KEY=1"}, "UNIQ_KEY"),
        ],
    )
    def test_a_message_that_no_broker_takes_is_refused_with_a_sentence(
        self, fields: Mapping[str, str], sentence: str, rocketmq: SyncRocketMQ, visitor: Visitor
    ) -> None:
        assert sentence in visitor.posts("/send", "/send/message", 422, **fields)
        assert not rocketmq.messages("orders")

    def test_a_refused_form_comes_back_with_what_was_filled_in(self, rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
        fields = {"topic": "or ders", "body": "<b>paid</b>", "keys": "order-1", "tag": "t", "properties": "a=b"}
        html = visitor.posted("/send", "/send/message", 422, fields).text
        assert html.count('id="refusal"') == 1
        for kept in ('value="or ders"', ">&lt;b&gt;paid&lt;/b&gt;</textarea>", 'value="order-1"', 'value="t"', ">a=b</textarea>"):
            assert kept in html
        assert '<a class="language" href="/send?lang=zh"' in html

    def test_a_form_that_no_broker_takes_is_sent_again_by_a_button(self, rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
        page = visitor.html("/send")
        rocketmq.crash()
        fields = {**hidden_fields(page, "/send/message"), "topic": "orders", "body": "paid"}
        answer = visitor.client.post("/send/message", data=fields)
        assert answer.status_code == 503
        assert {"topic": "orders", "body": "paid"}.items() <= hidden_fields(answer.text, "/send/message").items()

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
        assert "already has a topic orders" in visitor.posts("/topics/new", "/topics/create", 422, topic="orders", queues="8")
        assert "orders 3 0" in visitor.sees("/topics")

    @pytest.mark.parametrize(
        ("fields", "sentence"),
        [
            ({"topic": "", "queues": "1"}, "is blank"),
            ({"topic": "or ders", "queues": "1"}, "illegal characters"),
            ({"topic": "orders", "queues": "0"}, "Number of queues must be between 1 and 10000, not 0"),
            ({"topic": "orders", "queues": "10001"}, "Number of queues must be between 1 and 10000, not 10001"),
            ({"topic": "orders", "queues": "many"}, "The number of queues must be a whole number, not many"),
            ({"topic": "orders", "queues": "1", "broker": "192.0.2.1:10911"}, "Unknown broker 192.0.2.1:10911"),
        ],
    )
    def test_what_cannot_be_a_topic_is_refused(self, fields: Mapping[str, str], sentence: str, visitor: Visitor) -> None:
        assert sentence in visitor.posts("/topics/new", "/topics/create", 422, **fields)
        assert "No user topics yet" in visitor.sees("/topics")


@pytest.mark.parametrize("action", ["/send/message", "/topics/create", "/group/reset/do"])
def test_a_form_without_the_token_of_a_page_changes_nothing(action: str, rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
    fields = {"topic": "orders", "body": "x", "queues": "1"}
    assert visitor.client.post(action, data=fields).status_code == 403
    assert visitor.client.post(action, data=fields, headers={"Origin": "http://evil.example"}).status_code == 403
    assert "No user topics yet" in visitor.sees("/topics")


def taking(keys: list[str]) -> MessageListener:
    def take(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        keys.extend(key for message in messages for key in message.keys)
        return ConsumeStatus.CONSUME_SUCCESS

    return take


class TestResettingAGroup:
    """Tests of a reset. The group `credits` has consumed two of three messages and has left."""

    @pytest.fixture
    def rocketmq_settings(self) -> Mapping[str, object]:
        return {"defaultTopicQueueNums": 1}

    @pytest.fixture
    def taken(self, rocketmq: SyncRocketMQ) -> list[str]:
        """Returns the list to which the keys of the group's received messages are added."""
        return []

    @pytest.fixture(autouse=True)
    def consumed(self, rocketmq: SyncRocketMQ, taken: list[str]) -> None:
        self.send(rocketmq, "one")
        rocketmq.advance(minutes=10)
        self.send(rocketmq, "two")
        self.consume(rocketmq, taken)
        self.send(rocketmq, "three")
        assert taken == ["one", "two"]

    def send(self, rocketmq: SyncRocketMQ, key: str) -> None:
        rocketmq.producer("makers").send(Message.of("orders", b"paid", keys=[key]))

    def consume(self, rocketmq: SyncRocketMQ, taken: list[str]) -> None:
        consumer = rocketmq.consumer("credits", "orders", taking(taken))
        rocketmq.advance(minutes=1)
        consumer.shutdown()
        rocketmq.advance(minutes=1)

    def dry_run(self, to: str, time: str = "") -> str:
        return f"/group/reset?group=credits&topic=orders&to={to}&time={time}"

    def test_the_page_of_the_group_leads_to_it(self, visitor: Visitor) -> None:
        assert 'href="/group/reset?group=credits"' in visitor.html("/group?group=credits")
        assert "Result of the dry run" not in visitor.sees("/group/reset?group=credits")

    def test_a_dry_run_shows_what_comes_again_and_changes_nothing(
        self, rocketmq: SyncRocketMQ, visitor: Visitor, taken: list[str]
    ) -> None:
        seen = visitor.sees(self.dry_run("first"))
        assert "delivered again: 2 . Messages to be skipped, never delivered to this group: 0 ." in seen
        assert "No members online" in seen
        assert "0@0 again one" in seen
        assert "0@1 again two" in seen
        assert "three" not in seen
        self.consume(rocketmq, taken)
        assert taken == ["one", "two", "three"]

    def test_the_reset_to_the_first_message_delivers_all_again(
        self, rocketmq: SyncRocketMQ, visitor: Visitor, taken: list[str]
    ) -> None:
        seen = visitor.posts(self.dry_run("first"), "/group/reset/do", is_sure="yes")
        assert "reset: the group credits in orders, redelivered messages: 2, skipped: 0; its offsets are set" in seen
        self.consume(rocketmq, taken)
        assert taken == ["one", "two", "one", "two", "three"]

    def test_the_reset_to_the_end_skips_what_is_not_consumed(
        self, rocketmq: SyncRocketMQ, visitor: Visitor, taken: list[str]
    ) -> None:
        seen = visitor.sees(self.dry_run("end"))
        assert "delivered again: 0 . Messages to be skipped, never delivered to this group: 1 ." in seen
        assert "0@2 skipped three" in seen
        visitor.posts(self.dry_run("end"), "/group/reset/do", is_sure="yes")
        self.send(rocketmq, "four")
        self.consume(rocketmq, taken)
        assert taken == ["one", "two", "four"]

    def test_the_reset_to_a_time_begins_with_the_message_stored_nearest(
        self, rocketmq: SyncRocketMQ, visitor: Visitor, taken: list[str]
    ) -> None:
        time_ms = rocketmq.messages("orders")[1].store_timestamp
        assert "delivered again: 1 ." in visitor.sees(self.dry_run("time", str(time_ms)))
        visitor.posts(self.dry_run("time", str(time_ms)), "/group/reset/do", is_sure="yes")
        self.consume(rocketmq, taken)
        assert taken == ["one", "two", "two", "three"]

    def test_members_that_are_online_go_there(self, rocketmq: SyncRocketMQ, visitor: Visitor) -> None:
        again: list[str] = []
        rocketmq.consumer("credits", "orders", taking(again))
        rocketmq.advance(minutes=1)
        assert again == ["three"]
        seen = visitor.posts(self.dry_run("first"), "/group/reset/do", is_sure="yes")
        assert "redelivered messages: 3, skipped: 0; its members follow within seconds" in seen
        rocketmq.advance(minutes=1)
        assert again == ["three", "one", "two", "three"]
        assert "orders 0 3 3 0" in visitor.sees("/group?group=credits")

    def test_a_reset_to_where_the_group_is_changes_nothing(
        self, rocketmq: SyncRocketMQ, visitor: Visitor, taken: list[str]
    ) -> None:
        self.consume(rocketmq, taken)
        assert "a reset would change nothing" in visitor.sees(self.dry_run("end"))

    @pytest.mark.parametrize(
        ("fields", "sentence"),
        [
            ({}, "Confirm the reset: it cannot be undone"),
            ({"is_sure": "yes", "to": "elsewhere"}, "Choose a target"),
            ({"is_sure": "yes", "to": "time", "time": "soon"}, "Invalid time 'soon': expected, for example, 2026-01-31T12:00"),
            ({"is_sure": "yes", "to": "time", "time": "1969-12-31T00:00"}, "1969-12-31T00:00 is before 1970"),
            ({"is_sure": "yes", "topic": "nowhere"}, "has no offsets in the topic nowhere"),
        ],
    )
    def test_what_cannot_be_done_is_refused(self, fields: Mapping[str, str], sentence: str, visitor: Visitor) -> None:
        assert sentence in visitor.posts(self.dry_run("first"), "/group/reset/do", 422, **fields)

    def test_a_dry_run_to_no_time_comes_back_to_its_form(self, visitor: Visitor) -> None:
        seen = visitor.sees(self.dry_run("time", "soon"))
        assert "Invalid time 'soon': expected, for example, 2026-01-31T12:00." in seen
        assert 'name="time" type="datetime-local" step="1" value="soon"' in visitor.html(self.dry_run("time", "soon"))

    def test_a_group_that_has_consumed_nothing_has_nothing_to_reset(self, visitor: Visitor) -> None:
        assert "The consumer group nobody has no offsets" in visitor.sees("/group/reset?group=nobody", 404)
