"""Tests of the responses to payments and cancellations, and of the decisions that the broker receives."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from order_service.adapters.order_store import SqlOrderStore
from order_service.entrypoints.http import create_app
from order_service.service_layer.transaction_listener import transaction_listeners
from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.message.record import Record, to_message
from tests.component.order_service.conftest import ORDER_LIMIT_CENTS, PLACED_AT_MS, BrokerInProcess, lose_connection
from tests.passing_time import Clock

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState
BODY: dict[str, Any] = {"customer": "ada", "items": [{"name": "tea", "quantity": 2, "price_cents": 1250}]}
DEADLINE_MS = 600_000


@pytest.fixture
def clock() -> Clock:
    return Clock(PLACED_AT_MS)


@pytest.fixture
def broker(sqlite_store: SqlOrderStore, clock: Clock) -> BrokerInProcess:
    return BrokerInProcess(transaction_listeners(sqlite_store, order_limit_cents=ORDER_LIMIT_CENTS, now_ms=clock.world().wall_ms))


@pytest.fixture
def client(sqlite_store: SqlOrderStore, broker: BrokerInProcess, clock: Clock) -> Iterator[FlaskClient]:
    with create_app(sqlite_store, broker, clock.world(), payment_deadline_ms=DEADLINE_MS).test_client() as client:
        yield client


def place(client: FlaskClient, **more: object) -> str:
    answer = client.post("/orders", json=BODY | more)
    assert answer.status_code == 201
    return str(answer.json["order"]["order_id"])


def check_back(broker: BrokerInProcess, number: int = 0) -> LocalTransactionState:
    """Simulates a check-back for the sent message with this index, and returns the state that the listener returns."""
    sent = broker.decisions[number][0]
    properties = f"UNIQ_KEY\x01{sent.transaction_id}\x02KEYS\x01{sent.keys[0]}".encode()
    record = Record(0, 0, 0, 0, 0, 0, 0, 0, bytes(8), 0, bytes(8), 0, 0, sent.body, sent.topic.encode(), properties)
    return broker.listeners[sent.topic].check_local_transaction(to_message(record))


def test_an_order_to_be_paid_later_is_stored_and_the_broker_told_unknown(client: FlaskClient, broker: BrokerInProcess) -> None:
    answer = client.post("/orders", json=BODY | {"payment": "later"})
    assert (answer.status_code, answer.json["transaction"]["state"]) == (201, "PENDING")
    order = answer.json["order"]
    assert (order["state"], order["created_at"], order["pay_until"]) == (
        "AWAITING_PAYMENT", "2023-11-14T22:13:20.000Z", "2023-11-14T22:23:20.000Z",
    )  # fmt: skip
    assert broker.decisions[0][1] is UNKNOWN
    assert check_back(broker) is UNKNOWN
    assert client.get(f"/transactions/{answer.json['transaction']['transaction_id']}").json["state"] == "PENDING"


def test_check_back_finds_a_paid_order_and_commits(client: FlaskClient, broker: BrokerInProcess) -> None:
    order_id = place(client, payment="later")
    paid = client.post(f"/orders/{order_id}/payment", json={})
    assert (paid.status_code, paid.json["state"], paid.json["paid_at"]) == (200, "PAID", "2023-11-14T22:13:20.000Z")
    assert client.post(f"/orders/{order_id}/payment", json={}).json == paid.json
    assert check_back(broker) is COMMIT


def test_check_back_rolls_an_order_back_that_is_not_paid_in_time(
    client: FlaskClient, broker: BrokerInProcess, clock: Clock
) -> None:
    order_id = place(client, payment="later")
    clock.now_ms += DEADLINE_MS
    assert check_back(broker) is ROLLBACK
    order = client.get(f"/orders/{order_id}").json
    assert (order["state"], order["ended_because"]) == ("EXPIRED", "the deadline for its payment passed")
    late = client.post(f"/orders/{order_id}/payment", json={})
    assert (late.status_code, late.content_type) == (409, "application/problem+json")
    assert "EXPIRED" in late.json["detail"]
    assert client.post(f"/orders/{order_id}/cancellation", json={}).status_code == 409


def test_a_payment_that_comes_too_late_is_refused_although_no_check_back_came_before(
    client: FlaskClient, broker: BrokerInProcess, clock: Clock
) -> None:
    order_id = place(client, payment="later")
    clock.now_ms += DEADLINE_MS
    assert client.post(f"/orders/{order_id}/payment", json={}).status_code == 409
    assert check_back(broker) is ROLLBACK


def test_check_back_rolls_an_unpaid_order_back_that_is_cancelled_and_nobody_is_told(
    client: FlaskClient, broker: BrokerInProcess
) -> None:
    order_id = place(client, payment="later")
    answer = client.post(f"/orders/{order_id}/cancellation", json={"reason": "too dear"})
    assert (answer.status_code, answer.json["order"]["state"]) == (200, "CANCELLED")
    assert check_back(broker) is ROLLBACK
    assert len(broker.decisions) == 1


@pytest.mark.parametrize("payment", ["now", "later"])
def test_a_cancelled_order_is_told_by_a_second_message(client: FlaskClient, broker: BrokerInProcess, payment: str) -> None:
    order_id = place(client, payment=payment)
    client.post(f"/orders/{order_id}/payment", json={})
    answer = client.post(f"/orders/{order_id}/cancellation", json={"reason": "too dear"})
    assert (answer.status_code, answer.json["order"]["state"]) == (200, "CANCELLED")
    message, state = broker.decisions[1]
    assert (message.topic, message.tags, message.keys, state) == ("order_cancellations", "cancelled", (order_id,), COMMIT)
    assert json.loads(message.body) == {
        "version": 1, "order_id": order_id, "customer": "ada", "total_cents": 2500, "currency": "EUR",
        "cancelled_at_ms": 1_700_000_000_000, "reason": "too dear",
    }  # fmt: skip
    assert (check_back(broker, 0), check_back(broker, 1)) == (COMMIT, COMMIT)


def test_an_order_is_cancelled_once_however_often_it_is_asked_for(client: FlaskClient, broker: BrokerInProcess) -> None:
    order_id = place(client)
    answers = [client.post(f"/orders/{order_id}/cancellation", json={"reason": reason}) for reason in ("first", "second")]
    assert [(answer.status_code, answer.json["order"]["ended_because"]) for answer in answers] == [(200, "first")] * 2
    assert len(broker.decisions) == 2


def test_a_cancellation_whose_local_commit_is_unknown_is_202_and_check_back_decides(
    client: FlaskClient, broker: BrokerInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    order_id = place(client)
    with monkeypatch.context() as patch:
        patch.setattr(SqlOrderStore, "store_cancellation", lose_connection)
        answer = client.post(f"/orders/{order_id}/cancellation", json={})
    assert (answer.status_code, answer.json["ask_later"]) == (202, [f"/orders/{order_id}"])
    assert (broker.decisions[1][1], check_back(broker, 1)) == (UNKNOWN, ROLLBACK)
    assert client.get(f"/orders/{order_id}").json["state"] == "PLACED"
    assert client.post(f"/orders/{order_id}/cancellation", json={}).json["order"]["state"] == "CANCELLED"


def test_a_cancellation_without_a_broker_is_503_and_changes_nothing(client: FlaskClient, broker: BrokerInProcess) -> None:
    order_id = place(client)
    broker.is_up = False
    assert client.post(f"/orders/{order_id}/cancellation", json={}).status_code == 503
    assert client.get(f"/orders/{order_id}").json["state"] == "PLACED"


def test_an_order_that_is_paid_at_once_is_not_paid_again(client: FlaskClient) -> None:
    answer = client.post(f"/orders/{place(client)}/payment", json={})
    assert (answer.status_code, "PLACED" in answer.json["detail"]) == (409, True)


@pytest.mark.parametrize("order_id", ["none", "%00", "x" * 300])
@pytest.mark.parametrize("deed", ["payment", "cancellation"])
def test_an_order_that_nobody_placed_is_404(client: FlaskClient, deed: str, order_id: str) -> None:
    answer = client.post(f"/orders/{order_id}/{deed}", json={})
    assert (answer.status_code, answer.content_type) == (404, "application/problem+json")


@pytest.mark.parametrize(
    ("deed", "body", "field"),
    [("payment", {"amount": 1}, "amount"), ("cancellation", {"reason": ""}, "reason"), ("cancellation", {"reason": 1}, "reason"),
     ("cancellation", {"reason": "x" * 201}, "reason"), ("cancellation", {"reason": "nul\x00"}, "reason")],
)  # fmt: skip
def test_a_wrong_body_is_400_naming_the_field(client: FlaskClient, deed: str, body: dict[str, object], field: str) -> None:
    answer = client.post(f"/orders/{place(client)}/{deed}", json=body)
    assert (answer.status_code, answer.json["errors"][0]["field"]) == (400, field)


def test_a_key_is_replayed_with_the_state_that_the_order_has_by_then(client: FlaskClient) -> None:
    key = {"Idempotency-Key": "key-1"}
    first = client.post("/orders", json=BODY | {"payment": "later"}, headers=key)
    client.post(f"/orders/{first.json['order']['order_id']}/payment", json={})
    again = client.post("/orders", json=BODY | {"payment": "later"}, headers=key)
    assert (again.json["order"]["state"], again.json["transaction"]["state"]) == ("PAID", "COMMITTED")
    assert client.post("/orders", json=BODY, headers=key).status_code == 422


def test_the_timeline_of_an_order_tells_what_happened_and_by_which_transactions(
    client: FlaskClient, broker: BrokerInProcess, clock: Clock
) -> None:
    order_id = place(client, payment="later")
    clock.now_ms += 1_000
    client.post(f"/orders/{order_id}/payment", json={})
    clock.now_ms += 1_000
    client.post(f"/orders/{order_id}/cancellation", json={"reason": "too dear"})
    events = client.get(f"/orders/{order_id}/timeline").json["events"]
    stored = next(event for event in events if event["what"] == "STORED")
    assert stored["transaction"] == {"transaction_id": broker.decisions[0][0].transaction_id, "state": "COMMITTED"}
    told = {"transaction_id": broker.decisions[1][0].transaction_id, "state": "COMMITTED"}
    assert [event for event in events if event is not stored] == [
        {"at": "2023-11-14T22:13:20.000Z", "what": "ASKED_FOR", "transaction": None, "because": None},
        {"at": "2023-11-14T22:13:21.000Z", "what": "PAID", "transaction": None, "because": None},
        {"at": "2023-11-14T22:13:22.000Z", "what": "CANCELLED", "transaction": told, "because": "too dear"},
    ]


def test_the_timeline_of_an_expired_order_ends_with_its_deadline(
    client: FlaskClient, broker: BrokerInProcess, clock: Clock
) -> None:
    order_id = place(client, payment="later")
    clock.now_ms += DEADLINE_MS
    check_back(broker)
    by_name = {event["what"]: event for event in client.get(f"/orders/{order_id}/timeline").json["events"]}
    assert by_name.keys() == {"ASKED_FOR", "STORED", "EXPIRED"}
    assert by_name["STORED"]["transaction"]["state"] == "ROLLED_BACK"
    assert by_name["EXPIRED"]["because"] == "the deadline for its payment passed"
