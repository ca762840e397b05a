"""Tests of repairs of the ledger, and of the authorization of repairs over HTTP."""

from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine, text
from werkzeug.test import TestResponse

from credit_service.adapters.ledger import Ledger
from credit_service.adapters.repairs import NothingToRepair, Repaired, RepairRefused, Repairs
from credit_service.entrypoints.http import create_app
from rocketmq_broker.world import World
from tests.component.credit_service.conftest import a_credit, a_reversal, credit

KEY = {"Authorization": "Bearer secret"}
REVERSE = {"action": "reverse", "order_id": "order-1", "amount_cents": 2599, "reason": "no order"}


@pytest.fixture
def repairs(engine: Engine) -> Repairs:
    return Repairs(engine, World())


def points(ledger: Ledger, customer: str = "ada") -> int | None:
    found = ledger.find_customer(customer, max_entries=1)
    return found.points if found else None


def break_balance(engine: Engine, statement: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement))


def test_a_credit_is_reversed_once_and_the_entry_names_the_repair(ledger: Ledger, repairs: Repairs, engine: Engine) -> None:
    credit(ledger, [a_credit("order-1"), a_credit("order-2")])
    assert repairs.reverse("77-0001", "order-1", 2599) == Repaired("ada", 50, 25, is_new=True)
    assert repairs.reverse("77-0001", "order-1", 2599) == Repaired("ada", 25, 25, is_new=False)
    assert repairs.reverse("78-0001", "order-1", 2599) == Repaired("ada", 25, 25, is_new=False)
    assert [(entry.kind, entry.points) for entry in ledger.find_order("order-1")] == [("credit", 25), ("reversal", -25)]
    with engine.connect() as connection:
        told = connection.execute(text("SELECT message_id FROM credits WHERE kind = 'reversal'")).scalars().all()
    assert told == ["repair 77-0001"]


def test_a_credit_that_is_not_as_planned_is_left_alone(ledger: Ledger, repairs: Repairs, engine: Engine) -> None:
    credit(ledger, [a_credit("order-1")])
    with pytest.raises(NothingToRepair, match="no credit of order order-9"):
        repairs.reverse("77-0001", "order-9", 2599)
    with pytest.raises(RepairRefused, match="is for 2599 cents, not 1"):
        repairs.reverse("77-0001", "order-1", 1)
    break_balance(engine, "UPDATE credits SET points = 26")
    with pytest.raises(RepairRefused, match="has 26 points"):
        repairs.reverse("77-0001", "order-1", 2599)
    assert points(ledger) == 25


def test_another_reversal_of_the_order_is_left_alone(ledger: Ledger, repairs: Repairs) -> None:
    credit(ledger, [a_credit("order-1"), a_reversal("order-1", amount_cents=5)])
    with pytest.raises(RepairRefused, match="for another amount or customer"):
        repairs.reverse("77-0001", "order-1", 2599)


@pytest.mark.parametrize("fault", ["UPDATE balances SET points = 99", "DELETE FROM balances"])
def test_a_balance_becomes_the_sum_of_its_entries(ledger: Ledger, repairs: Repairs, engine: Engine, fault: str) -> None:
    credit(ledger, [a_credit("order-1"), a_credit("order-2"), a_reversal("order-2"), a_credit("order-3", customer="bob")])
    break_balance(engine, fault)
    before = 99 if "99" in fault else None
    assert repairs.rebuild_balance("77-0002", "ada") == Repaired("ada", before, 25, is_new=True)
    assert repairs.rebuild_balance("77-0002", "ada") == Repaired("ada", 25, 25, is_new=False)
    assert points(ledger) == 25


def test_a_balance_without_entries_becomes_nothing(ledger: Ledger, repairs: Repairs, engine: Engine) -> None:
    break_balance(engine, "INSERT INTO balances VALUES ('ada', 7)")
    assert repairs.rebuild_balance("77-0002", "ada") == Repaired("ada", 7, 0, is_new=True)
    with pytest.raises(NothingToRepair, match="no entry of customer bob"):
        repairs.rebuild_balance("77-0002", "bob")
    assert points(ledger, "bob") is None


class Nobody:
    """A dependency for tests that do not check the health."""


def a_client(engine: Engine, key: str) -> FlaskClient:
    health: Any = Nobody()
    repairs = Repairs(engine, World())
    return create_app(Ledger(engine, World()), health, World(), repairs=repairs, repair_key=key).test_client()


@pytest.fixture
def client(sqlite_engine: Engine, sqlite_ledger: Ledger) -> Iterator[FlaskClient]:
    credit(sqlite_ledger, [a_credit("order-1")])
    with a_client(sqlite_engine, "secret") as client:
        yield client


def put(client: FlaskClient, wanted: object = REVERSE, **more: Any) -> TestResponse:
    return client.put("/repairs/77-0001", json=wanted, **{"headers": KEY, **more})


def test_over_http_a_repair_is_created_once(client: FlaskClient) -> None:
    first, second = put(client), put(client)
    assert (first.status_code, first.get_json()) == (201, {"customer": "ada", "points_before": 25, "points_after": 0})
    assert (second.status_code, second.get_json()) == (200, {"customer": "ada", "points_before": 0, "points_after": 0})
    rebuilt = put(client, {"action": "rebuild_balance", "customer": "ada", "reason": "why"})
    assert (rebuilt.status_code, rebuilt.get_json()["points_after"]) == (200, 0)


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer other"}, {"Authorization": "secret"}])
def test_without_the_key_nobody_repairs(client: FlaskClient, sqlite_ledger: Ledger, headers: dict[str, str]) -> None:
    assert put(client, headers=headers).status_code == 403
    assert points(sqlite_ledger) == 25


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer "}, KEY])
def test_a_service_without_a_key_file_repairs_nothing(
    sqlite_engine: Engine, sqlite_ledger: Ledger, headers: dict[str, str]
) -> None:
    credit(sqlite_ledger, [a_credit("order-1")])
    with a_client(sqlite_engine, "") as client:
        assert put(client, headers=headers).status_code == 403
    assert points(sqlite_ledger) == 25


@pytest.mark.parametrize(
    ("wanted", "status", "told"),
    [
        ({**REVERSE, "amount_cents": 1}, 409, "is for 2599 cents, not 1"),
        ({**REVERSE, "order_id": "order-9"}, 404, "no credit of order order-9"),
        ({**REVERSE, "action": "forget"}, 400, "action"),
        ({**REVERSE, "amount_cents": "2599"}, 400, "amount_cents"),
        ({**REVERSE, "more": 1}, 400, "more"),
        ({**REVERSE, "order_id": "a\u0000b"}, 400, "order_id"),
        ([], 400, "body"),
    ],
)
def test_a_refusal_says_why(client: FlaskClient, wanted: object, status: int, told: str) -> None:
    answer = put(client, wanted)
    assert answer.status_code == status
    assert told in answer.get_json()["detail"]
    assert answer.content_type == "application/problem+json"


def test_a_repair_s_id_is_short_and_plain(client: FlaskClient) -> None:
    assert client.put(f"/repairs/{'x' * 51}", json=REVERSE, headers=KEY).status_code == 400
    assert client.put("/repairs/a%20b", json=REVERSE, headers=KEY).status_code == 400
