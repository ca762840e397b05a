from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from credit_service.adapters.ledger import Ledger
from credit_service.entrypoints.http import create_app
from service_runtime.known_hosts import KnownHosts
from tests.unit.credit_service.conftest import a_credit


class Switch:
    """Something that is up or down."""

    def __init__(self) -> None:
        self.is_up = True

    def is_reachable(self) -> bool:
        return self.is_up


@pytest.fixture
def redis() -> Switch:
    return Switch()


@pytest.fixture
def client(sqlite_ledger: Ledger, redis: Switch) -> Iterator[FlaskClient]:
    with create_app(sqlite_ledger, redis, Switch()).test_client() as client:
        yield client


def test_a_customer_sees_balance_entries_and_the_rule(client: FlaskClient, sqlite_ledger: Ledger) -> None:
    sqlite_ledger.credit([a_credit("1", amount_cents=250), a_credit("2", amount_cents=399)])
    answer = client.get("/customers/ada/credit").json
    assert (answer["customer"], answer["points"]) == ("ada", 5)
    assert answer["rule"] == "one credit point for each full unit of currency"
    assert [(entry["order_id"], entry["points"]) for entry in answer["entries"]] == [("2", 3), ("1", 2)]


def test_only_the_last_entries_are_shown(client: FlaskClient, sqlite_ledger: Ledger) -> None:
    sqlite_ledger.credit([a_credit(str(number)) for number in range(5)])
    answer = client.get("/customers/ada/credit?limit=2").json
    assert len(answer["entries"]) == 2
    assert answer["points"] == 5 * 25


def test_a_customer_with_a_slash_in_the_name_is_found(client: FlaskClient, sqlite_ledger: Ledger) -> None:
    sqlite_ledger.credit([a_credit(customer="a/b c")])
    assert client.get("/customers/a%2Fb%20c/credit").json["customer"] == "a/b c"


@pytest.mark.parametrize("path", ["/customers/nobody/credit", "/customers/%00/credit", "/customers//credit", "/nothing"])
def test_who_has_no_credit_is_404(client: FlaskClient, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.content_type) == (404, "application/problem+json")


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x"])
def test_a_wrong_parameter_is_400_naming_it(client: FlaskClient, query: str) -> None:
    answer = client.get(f"/customers/ada/credit?{query}")
    assert (answer.status_code, answer.json["errors"][0]["field"]) == (400, "limit")


def test_a_database_that_does_not_answer_is_503(client: FlaskClient, sqlite_ledger: Ledger) -> None:
    with sqlite_ledger._engine.begin() as connection:
        connection.execute(text("ALTER TABLE balances RENAME TO gone"))
    assert client.get("/customers/ada/credit").status_code == 503


def test_health_names_what_does_not_answer(client: FlaskClient, redis: Switch) -> None:
    assert client.get("/healthz").json == {"status": "ok", "database": "ok", "redis": "ok", "broker": "ok"}
    redis.is_up = False
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json["redis"], answer.json["broker"]) == (503, "unreachable", "ok")


@pytest.mark.parametrize("path", ["/customers/ada/credit", "/healthz", "/nothing"])
@pytest.mark.parametrize(("headers", "status"), [({"Host": "evil.example:8081"}, 421), ({"Origin": "http://evil.example"}, 403)])
def test_a_page_of_another_site_reads_nothing(client: FlaskClient, path: str, headers: dict[str, str], status: int) -> None:
    answer = client.get(path, headers=headers)
    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")


def test_names_that_were_given_are_answered(sqlite_ledger: Ledger, redis: Switch) -> None:
    app = create_app(sqlite_ledger, redis, Switch(), hosts=KnownHosts.of("0.0.0.0", "credit-service"))
    with app.test_client() as client:
        hosts = ("credit-service:8081", "localhost:49153", "172.18.0.5:8081", "order-service:8081")
        assert [client.get("/healthz", headers={"Host": host}).status_code for host in hosts] == [200, 200, 200, 421]
