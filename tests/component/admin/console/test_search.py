"""Tests of the console's search by id and key, and of its suggestions if nothing is found."""

import pytest

from rocketmq_broker.client import Message
from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.console.visitor import Visitor
from tests.unit.testing.listeners import UNKNOWN, Transactions


@pytest.fixture
def transaction_id(rocketmq: SyncRocketMQ) -> str:
    """Returns the id of a pending transaction. The broker also has two normal messages with the same key."""
    producer = rocketmq.producer("makers")
    for body in (b'{"customer": "Grace"}', b"shipped"):
        producer.send(Message.of("orders", body, keys=["parcel-7"], user_properties={"colour": "Crimson"}))
    shops = rocketmq.transaction_producer("shops", Transactions(UNKNOWN, UNKNOWN))
    sent = shops.send_message_in_transaction(Message.of("payments", b"paid in cash", keys=["payment-17"]))
    return sent.transaction_id or ""


def test_an_id_or_key_of_a_transaction_leads_to_its_page(transaction_id: str, visitor: Visitor) -> None:
    for word in (transaction_id, "payment-17"):
        answer = visitor.client.get("/search", params={"word": f" {word} "}, follow_redirects=False)
        assert (answer.status_code, answer.headers["Location"]) == (303, f"/transaction?word={word}")


def test_messages_with_one_key_are_listed_and_their_links_work(transaction_id: str, visitor: Visitor) -> None:
    answer = visitor.client.get("/search", params={"word": "parcel-7"}, follow_redirects=False)
    assert answer.headers["Location"] == "/messages?word=parcel-7"
    assert "shipped" in visitor.sees("/search?word=parcel-7")


@pytest.mark.parametrize(
    ("word", "where", "name"),
    [
        ("payment-1", "in a key or id; keys payment-17", "transaction"),
        ("IN CASH", "in the body; keys payment-17", "transaction"),
        ("paymant-17", "a similar key; keys payment-17", "transaction"),
        ("grace", "in the body; keys parcel-7", "message"),
        ("crimson", "in a property; keys parcel-7", "message"),
    ],
)
def test_where_nothing_is_found_what_is_near_is_offered(
    word: str, where: str, name: str, transaction_id: str, visitor: Visitor
) -> None:
    seen = visitor.sees(f"/search?word={word}")
    assert f"No message or transaction with the id or key {word}." in seen
    assert where in seen
    assert (transaction_id in seen) is (name == "transaction")


def test_the_links_of_what_is_near_lead_to_it(transaction_id: str, visitor: Visitor) -> None:
    assert f'href="/transaction?word={transaction_id}"' in visitor.html("/search?word=payment-1")
    path = visitor.html("/search?word=grace").partition('href="/messages?word=')[2].partition('"')[0]
    assert "Grace" in visitor.sees(f"/messages?word={path}")


@pytest.mark.parametrize("word", ["qqqqqqqq", "<script>alert(1)</script>", "%25", "'"])
def test_a_word_that_is_nowhere_is_said_to_be_nowhere(word: str, transaction_id: str, visitor: Visitor) -> None:
    seen = visitor.client.get("/search", params={"word": word})
    assert seen.status_code == 200
    assert "No similar messages among" in seen.text
    assert "<script>alert" not in seen.text


def test_a_word_is_bounded(visitor: Visitor) -> None:
    assert "Word too long: 201 characters, at most 200" in visitor.sees(f"/search?word={'a' * 201}", 404)
    assert "Enter an id" in visitor.sees("/search?word=")


def test_the_screen_of_messages_leads_to_what_is_near(transaction_id: str, visitor: Visitor) -> None:
    assert 'href="/search?word=parcel"' in visitor.html("/messages?word=parcel")
