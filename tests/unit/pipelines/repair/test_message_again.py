"""Tests a message that is published again."""

import json
from types import MappingProxyType

from order_messages.order_created import OrderCreated
from pipelines.repair.message_again import REPAIR, body_of, contradiction, message_again, names_order
from pipelines.repair.plan import Action, OrderFields, RepairStep
from rocketmq_broker.message import Message, properties

ORDER = OrderFields("o", "ada", 1250, "EUR", 5)


def step(*, to_group_only: bool = False) -> RepairStep:
    return RepairStep(
        id="77-0001", action=Action.PUBLISH, subject="o", finding="missing_credit", evidence=[], transaction_id="T-o",
        order=ORDER, to_group_only=to_group_only,
    )  # fmt: skip


def test_without_an_original_the_order_row_is_told_as_the_credit_service_reads_it() -> None:
    message = message_again(step(), "orders", "credit_service", None)
    read = OrderCreated.read(message.body)
    assert (read.order_id, read.customer, read.total_cents, read.currency) == ("o", "ada", 1250, "EUR")
    assert (message.topic, message.tags, message.keys, message.transaction_id) == ("orders", "created", ("o",), "T-o")


def test_an_original_keeps_its_body_and_nothing_of_its_transaction() -> None:
    """The message that is published again has the original's body and keys, but none of its transaction properties.

    With TRAN_MSG, the broker would treat it as the half message of a new transaction.
    """
    kept = {properties.KEYS: "o more", properties.TAGS: "t"}
    named = {**kept, properties.TRANSACTION_PREPARED: "true", properties.PRODUCER_GROUP: "p"}
    original = Message(topic="half", body=b'{"order_id": "o", "new": 1}', properties=MappingProxyType(named))
    message = message_again(step(), "orders", "credit_service", original)
    assert message.body == original.body
    assert dict(message.properties) == {**kept, properties.UNIQUE_KEY: "T-o", REPAIR: "77-0001"}


def test_for_one_group_it_goes_to_that_group_s_retry_topic() -> None:
    message = message_again(step(to_group_only=True), "orders", "credit_service", None)
    assert message.topic == "%RETRY%credit_service"
    assert message.properties[properties.RETRY_TOPIC] == "orders"


def test_a_body_that_contradicts_the_order_row_is_told() -> None:
    assert contradiction(ORDER, body_of(ORDER)) is None
    other = json.dumps({**json.loads(body_of(ORDER)), "total_cents": 1}).encode()
    assert contradiction(ORDER, other) == "total_cents is 1 in the message and 1250 in the order database"
    assert contradiction(ORDER, b"\xff") == "the message's body is not an order"
    assert contradiction(ORDER, b"[]") == "the message's body is not an order"


def test_a_body_names_its_order() -> None:
    assert names_order(body_of(ORDER), "o")
    assert not names_order(body_of(ORDER), "p")
    assert not names_order(b"nothing", "o")
