import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine, text

from order_service.adapters.order_store import SqlOrderStore
from order_service.domain.history import Witness
from order_service.entrypoints.http import MAX_BODY_BYTES, create_app
from order_service.service_layer.attempt import Outcome
from order_service.service_layer.order_store import HistoryDoubted
from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.known_hosts import KnownHosts
from rocketmq_broker.world import World
from tests.component.order_service.conftest import ORDER_LIMIT_CENTS, BrokerInProcess, a_later_order, lose_connection

TEA = {"name": "tea", "quantity": 2, "price_cents": 1250}
BODY: dict[str, Any] = {"customer": "ada", "items": [TEA]}


@pytest.fixture
def client(sqlite_store: SqlOrderStore, broker: BrokerInProcess) -> Iterator[FlaskClient]:
    with create_app(sqlite_store, broker, World(), readiness_counts_s=0).test_client() as client:
        yield client


def test_an_order_is_placed_and_found_again(client: FlaskClient, broker: BrokerInProcess) -> None:
    answer = client.post("/orders", json=BODY)
    assert answer.status_code == 201
    order = answer.json["order"]
    assert (order["customer"], order["items"], order["total_cents"], order["currency"]) == ("ada", [TEA], 2500, "EUR")
    message, state = broker.decisions[0]
    assert state is LocalTransactionState.COMMIT_MESSAGE
    assert answer.json["transaction"] == {"transaction_id": message.transaction_id, "state": "COMMITTED"}
    assert answer.headers["Location"] == f"/orders/{order['order_id']}"
    assert client.get(answer.headers["Location"]).json == order
    assert client.get(f"/transactions/{message.transaction_id}").json["state"] == "COMMITTED"


def test_the_message_says_what_the_credit_service_needs(client: FlaskClient, broker: BrokerInProcess) -> None:
    order = client.post("/orders", json=BODY | {"currency": "CHF"}).json["order"]
    message, _ = broker.decisions[0]
    assert (message.topic, message.tags, message.keys) == ("orders", "created", (order["order_id"],))
    assert json.loads(message.body) == {
        "version": 2,
        "order_id": order["order_id"],
        "customer": "ada",
        "total_cents": 2500,
        "currency": "CHF",
        "created_at_ms": order["created_at_ms"],
        "items": [{"name": "tea", "quantity": 2}],
    }


def test_an_order_above_the_limit_is_refused_and_not_stored(client: FlaskClient, broker: BrokerInProcess) -> None:
    answer = client.post("/orders", json=BODY | {"items": [TEA | {"price_cents": ORDER_LIMIT_CENTS}]})
    assert answer.status_code == 409
    assert answer.content_type == "application/problem+json"
    assert "exceeds the limit" in answer.json["detail"]
    assert broker.decisions[0][1] is LocalTransactionState.ROLLBACK_MESSAGE
    assert client.get("/orders?customer=ada").json["orders"] == []


def test_an_unreachable_broker_is_503_and_no_order_row(client: FlaskClient, broker: BrokerInProcess) -> None:
    broker.is_up = False
    answer = client.post("/orders", json=BODY)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert client.get("/orders?customer=ada").json["orders"] == []


def test_a_repeated_request_with_the_same_key_gets_the_same_answer(client: FlaskClient, broker: BrokerInProcess) -> None:
    first = client.post("/orders", json=BODY, headers={"Idempotency-Key": "key-1"})
    second = client.post("/orders", json=BODY, headers={"Idempotency-Key": "key-1"})
    assert (second.status_code, second.json) == (first.status_code, first.json)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.headers
    assert len(broker.decisions) == 1


@pytest.mark.parametrize("change", [{"items": [TEA, TEA]}, {"currency": "CHF"}])
def test_a_key_used_for_another_order_is_422(client: FlaskClient, change: dict[str, Any]) -> None:
    client.post("/orders", json=BODY, headers={"Idempotency-Key": "key-1"})
    answer = client.post("/orders", json=BODY | change, headers={"Idempotency-Key": "key-1"})
    assert answer.status_code == 422
    assert len(client.get("/orders?customer=ada").json["orders"]) == 1


def test_a_key_that_another_customer_has_used_is_neither_a_conflict_nor_tells_of_the_other(client: FlaskClient) -> None:
    others = client.post("/orders", json=BODY, headers={"Idempotency-Key": "key-1"})
    own = client.post("/orders", json=BODY | {"customer": "bob"}, headers={"Idempotency-Key": "key-1"})
    assert own.status_code == 201
    assert "Idempotent-Replayed" not in own.headers
    assert own.json["order"]["customer"] == "bob"
    assert own.json["order"]["order_id"] != others.json["order"]["order_id"]


def test_a_key_taken_while_the_half_message_was_under_way_answers_with_the_order_there_is(
    client: FlaskClient, broker: BrokerInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = client.post("/orders", json=BODY, headers={"Idempotency-Key": "key-1"})
    find, hidden = SqlOrderStore.find_order_by_key, [True]
    monkeypatch.setattr(SqlOrderStore, "find_order_by_key", lambda *args: None if hidden and hidden.pop() else find(*args))
    second = client.post("/orders", json=BODY, headers={"Idempotency-Key": "key-1"})
    assert second.json == first.json
    assert broker.decisions[1][1] is LocalTransactionState.ROLLBACK_MESSAGE


@pytest.mark.parametrize("key", ["", "with space", "k" * 256, "Schlüssel"])
def test_a_key_that_is_none_is_400_naming_the_header(client: FlaskClient, key: str) -> None:
    answer = client.post("/orders", json=BODY, headers={"Idempotency-Key": key})
    assert answer.status_code == 400
    assert answer.json["errors"][0]["field"] == "Idempotency-Key"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"customer": None}, "customer"),
        ({"customer": ""}, "customer"),
        ({"customer": "  "}, "customer"),
        ({"customer": "a" * 101}, "customer"),
        ({"customer": "nul\x00"}, "customer"),
        ({"customer": 7}, "customer"),
        ({"items": []}, "items"),
        ({"items": [TEA] * 101}, "items"),
        ({"items": "tea"}, "items"),
        ({"items": [TEA, TEA | {"quantity": 0}]}, "items[1].quantity"),
        ({"items": [TEA | {"quantity": "2"}]}, "items[0].quantity"),
        ({"items": [TEA | {"quantity": 1.5}]}, "items[0].quantity"),
        ({"items": [TEA | {"quantity": True}]}, "items[0].quantity"),
        ({"items": [TEA | {"quantity": 10_001}]}, "items[0].quantity"),
        ({"items": [TEA | {"price_cents": -1}]}, "items[0].price_cents"),
        ({"items": [TEA | {"price_cents": 10**30}]}, "items[0].price_cents"),
        ({"items": [TEA | {"name": ""}]}, "items[0].name"),
        ({"items": [{"quantity": 1, "price_cents": 1}]}, "items[0].name"),
        ({"currency": "euro"}, "currency"),
        ({"currency": "eur"}, "currency"),
        ({"coupon": "x"}, "coupon"),
        ({"payment": "never"}, "payment"),
    ],
)
def test_wrong_input_is_400_naming_the_field(client: FlaskClient, change: dict[str, Any], field: str) -> None:
    answer = client.post("/orders", json=BODY | change)
    assert answer.status_code == 400
    assert answer.content_type == "application/problem+json"
    assert [error["field"] for error in answer.json["errors"]] == [field]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b'{"customer": "\\ud800"}', b"[" * 10_000])
def test_a_body_that_is_no_order_is_400(client: FlaskClient, body: bytes) -> None:
    answer = client.post("/orders", data=body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json["errors"]


def test_a_body_too_large_is_413(client: FlaskClient) -> None:
    answer = client.post("/orders", data=b" " * (MAX_BODY_BYTES + 1), content_type="application/json")
    assert (answer.status_code, answer.content_type) == (413, "application/problem+json")


@pytest.mark.parametrize(
    "path",
    ["/orders/none", "/orders/%00", "/orders/" + "x" * 300, "/orders/none/timeline", "/orders/%00/timeline", "/transactions/none",
     "/nothing"],
)  # fmt: skip
def test_what_does_not_exist_is_404(client: FlaskClient, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.content_type) == (404, "application/problem+json")


def test_a_method_that_is_not_offered_is_405_and_says_which_are(client: FlaskClient) -> None:
    answer = client.delete("/orders")
    assert answer.status_code == 405
    assert "POST" in answer.headers["Allow"]


def test_pages_of_a_customers_orders_follow_next(client: FlaskClient) -> None:
    placed = [client.post("/orders", json=BODY).json["order"]["order_id"] for _ in range(3)]
    client.post("/orders", json=BODY | {"customer": "bob & co"})
    page = client.get("/orders?customer=ada&limit=2").json
    rest = client.get(page["next"]).json
    assert [order["order_id"] for order in page["orders"] + rest["orders"]] == placed[::-1]
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("query", "field"),
    [("", "customer"), ("customer=", "customer"), ("customer=a&limit=0", "limit"), ("customer=a&limit=x", "limit"),
     ("customer=a&limit=201", "limit"), ("customer=a&before=-1", "before"), ("customer=a&before=99999999999999999999", "before"),
     ("customer=a&page=2", "page"), ("customer=%00", "customer")],
)  # fmt: skip
def test_a_wrong_parameter_is_400_naming_it(client: FlaskClient, query: str, field: str) -> None:
    answer = client.get(f"/orders?{query}")
    assert answer.status_code == 400
    assert answer.json["errors"][0]["field"] == field


def test_an_unknown_outcome_is_202_and_says_where_to_ask_later(
    client: FlaskClient, broker: BrokerInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(SqlOrderStore, "store_order", lose_connection)
        answer = client.post("/orders", json=BODY)
    assert answer.status_code == 202
    assert answer.json["transaction"]["state"] == "UNKNOWN"
    assert broker.decisions[0][1] is LocalTransactionState.UNKNOWN
    order_path, transaction_path = answer.json["ask_later"]
    assert client.get(order_path).status_code == client.get(transaction_path).status_code == 404


def test_a_local_transaction_that_takes_too_long_is_202(
    client: FlaskClient, broker: BrokerInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "send_in_transaction", lambda *_: Outcome.UNKNOWN)
    assert client.post("/orders", json=BODY).status_code == 202


def test_a_database_that_takes_nothing_is_503(client: FlaskClient, sqlite_engine: Engine) -> None:
    with sqlite_engine.begin() as connection:
        connection.execute(text("ALTER TABLE order_items RENAME TO gone"))
    assert client.post("/orders", json=BODY).status_code == 503


def test_a_transaction_that_check_back_rolled_back_first_is_503(client: FlaskClient, sqlite_store: SqlOrderStore) -> None:
    sqlite_store.settle(f"{1:032X}")
    answer = client.post("/orders", json=BODY)
    assert (answer.status_code, answer.json["title"]) == (503, "Transaction expired")


def test_health_names_what_does_not_answer(client: FlaskClient, broker: BrokerInProcess) -> None:
    assert client.get("/healthz").json == {"status": "ok", "database": "ok", "broker": "ok", "missing": [], "attention": []}
    broker.discarded = None
    assert client.get("/healthz").json["attention"] == [], "nobody knows of discarded messages"
    broker.is_up = False
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json["broker"], answer.json["database"]) == (503, "unreachable", "ok")


@pytest.mark.parametrize(
    ("state", "value", "words"),
    [
        ("discarded", 2, "the broker discarded 2 messages of orders after the last check-back; "),
        (
            "refusing",
            ["broker-b did not answer within 1 s"],
            "broker-b did not answer within 1 s; orders go to the other brokers",
        ),
    ],
)
def test_health_tells_of_messages_that_were_given_up_and_of_brokers_that_take_none_and_the_service_serves_on(
    client: FlaskClient, broker: BrokerInProcess, state: str, value: object, words: str
) -> None:
    setattr(broker, state, value)
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json["status"], client.get("/readyz").status_code) == (200, "attention", 200)
    (attention,) = answer.json["attention"]
    assert attention.startswith(words)


def test_a_service_on_an_old_copy_of_its_database_takes_no_order_until_a_person_decides(
    client: FlaskClient, sqlite_store: SqlOrderStore
) -> None:
    of_another = Witness("0" * 32, "0" * 32, 1)
    with pytest.raises(HistoryDoubted):
        sqlite_store.settle("transaction-1", "order-1", witness=of_another)
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json["status"]) == (503, "degraded")
    (missing,) = answer.json["missing"]
    assert missing.startswith(f"history: half messages name the order database {'0' * 32}, but this one is ")
    assert "python -m order_service adopt-history. See docs/services.md, An old copy of the order database" in missing
    answer = client.get("/readyz")
    assert (answer.status_code, [error["field"] for error in answer.json["errors"]]) == (503, ["history"])
    answer = client.post("/orders", json=BODY)
    assert (answer.status_code, answer.json["title"]) == (503, "Database in doubt")
    sqlite_store.store_order(a_later_order(), "transaction-2")
    refused = client.post("/orders/order-1/payment", json={})
    assert (refused.status_code, refused.json["title"]) == (503, "Database in doubt")
    sqlite_store.history.adopt("the other one is gone")
    assert client.get("/healthz").json["status"] == "ok"
    assert client.post("/orders", json=BODY).status_code == 201


def test_a_mistake_of_ours_is_500_without_details(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqlOrderStore, "find_order", lambda *_: 1 / 0)
    answer = client.get("/orders/any")
    assert answer.status_code == 500
    assert "division" not in answer.text


def test_readiness_falls_with_the_broker_and_with_the_database(
    client: FlaskClient, broker: BrokerInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (client.get("/readyz").status_code, client.get("/readyz").json["status"]) == (200, "ok")
    broker.is_up = False
    monkeypatch.setattr(SqlOrderStore, "why_unready", lambda _: "database is locked")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.content_type, answer.json["title"]) == (503, "application/problem+json", "Not ready")
    assert answer.json["errors"] == [
        {"field": "database", "message": "database is locked"},
        {"field": "broker", "message": "the broker is away"},
    ]
    assert answer.json["detail"].startswith("database: database is locked. Check the order database for ")
    assert "Run rocketmq-admin doctor to check name server and broker." in answer.json["detail"]
    health = client.get("/healthz")
    assert (health.status_code, health.json["status"], len(health.json["missing"])) == (503, "degraded", 2)


def test_the_process_lives_whatever_is_unreachable(
    client: FlaskClient, broker: BrokerInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/livez returns 200 while the broker and the database are unavailable: a restart would repair neither."""
    broker.is_up = False
    monkeypatch.setattr(SqlOrderStore, "why_unready", lambda _: "database is locked")
    answer = client.get("/livez")
    assert (answer.status_code, answer.json) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", None, ""]
)
def test_a_body_that_is_not_declared_as_json_is_415_and_orders_nothing(client: FlaskClient, content_type: str | None) -> None:
    """A request with a body of another content type is rejected with 415, and no order is placed.

    Pages of other sites can send requests with these content types without a preflight request.
    """
    answer = client.post("/orders", data=json.dumps(BODY), content_type=content_type)
    assert (answer.status_code, answer.content_type) == (415, "application/problem+json")
    assert "application/json" in answer.json["detail"]
    assert answer.headers["Accept-Post"] == "application/json"
    assert client.get("/orders?customer=ada").json["orders"] == []


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_json_may_be_declared_in_any_usual_way(client: FlaskClient, content_type: str) -> None:
    assert client.post("/orders", data=json.dumps(BODY), content_type=content_type).status_code == 201


def test_a_post_to_nowhere_is_404_whatever_it_holds(client: FlaskClient) -> None:
    assert client.post("/nothing", data="x", content_type="text/plain").status_code == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_a_page_of_another_site_orders_nothing(client: FlaskClient, headers: dict[str, str], status: int) -> None:
    answer = client.post("/orders", json=BODY, headers=headers)
    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")
    assert answer.json["detail"]
    assert client.get("/orders?customer=ada").json["orders"] == []


@pytest.mark.parametrize(
    "path", ["/orders?customer=ada", "/orders/any", "/transactions/any", "/healthz", "/livez", "/openapi.json", "/nothing"]
)
def test_a_name_that_came_to_mean_our_address_reads_nothing(client: FlaskClient, path: str) -> None:
    answer = client.get(path, headers={"Host": "evil.example:8080"})
    assert answer.status_code == 421
    assert "add the name to its known hosts" in answer.json["detail"]


def test_names_that_were_given_are_answered(sqlite_store: SqlOrderStore, broker: BrokerInProcess) -> None:
    app = create_app(sqlite_store, broker, World(), hosts=KnownHosts.of("0.0.0.0", "order-service"))
    with app.test_client() as client:
        statuses = [
            client.post("/orders", json=BODY, headers={"Host": host}).status_code
            for host in ("order-service:8080", "localhost:49153", "172.18.0.5:8080", "credit-service:8080")
        ]
    assert statuses == [201, 201, 201, 421]


def test_the_message_carries_the_request_s_id_and_the_answer_tells_it(client: FlaskClient, broker: BrokerInProcess) -> None:
    answer = client.post("/orders", json=BODY, headers={"X-Request-Id": "request-7"})
    assert answer.headers["X-Request-Id"] == "request-7"
    assert broker.decisions[0][0].properties["requestId"] == "request-7"
