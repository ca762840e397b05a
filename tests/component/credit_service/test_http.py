import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from flask.testing import FlaskClient
from redis.exceptions import ConnectionError as RedisConnectionError
from sqlalchemy import Engine, text

from credit_service.adapters.ledger import Ledger
from credit_service.adapters.workers import TAKES_NONE_AFTER_S, LivingWorker, Workers
from credit_service.entrypoints.health import CreditHealth
from credit_service.entrypoints.http import create_app
from rocketmq_broker.client import QueueProgress
from rocketmq_broker.known_hosts import KnownHosts
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.world import World
from service_runtime.http.readiness import Need
from service_runtime.inbox.backlog import InboxBacklog
from tests.component.credit_service.conftest import a_credit, a_reversal, an_order, credit, orders
from tests.component.credit_service.test_crediting import drain, refuse
from tests.passing_time import Clock


class Everything:
    """The dependencies that /healthz checks. By default they are available and idle, with one worker."""

    def __init__(self) -> None:
        self.is_broker_up = self.is_redis_up = True
        self.workers = [LivingWorker("one", pid=7, processes=2, age_s=60, idle_s=1.5, takes_tasks=True)]
        self.stands_still_s = 0.0
        self.dead_letters: int | None = 0

    group = "credit_service"

    def count_dead_letters(self) -> int | None:
        return self.dead_letters

    def why_unready(self) -> str | None:
        return None if self.is_broker_up else "the broker is away"

    def progress(self) -> list[QueueProgress]:
        return [QueueProgress(MessageQueue("orders", "broker-a", 3), 40, self.stands_still_s)]

    def attention(self) -> list[str]:
        return []


class WorkersOf(Workers):
    """The workers in `everything`, which can be read only while Redis is available."""

    def __init__(self, everything: Everything) -> None:
        object.__setattr__(self, "redis", everything)

    def living(self) -> list[LivingWorker]:
        everything: Everything = cast(Any, self.redis)
        if not everything.is_redis_up:
            raise RedisConnectionError("connection refused")
        return everything.workers


@pytest.fixture
def everything() -> Everything:
    return Everything()


def sources(ledger: Ledger, everything: Everything, clock: Clock) -> CreditHealth:
    return CreditHealth(
        service="credit",
        database=ledger,
        consumer=everything,
        workers=WorkersOf(everything),
        results=everything,
        backlog=InboxBacklog(ledger.inbox, "credit_service", lambda: clock.now_ms),
        outbox=Need("refusals", InboxBacklog(ledger.refusals, "credit_service", lambda: clock.now_ms), "Look at the broker."),
        now_s=time.monotonic,
        readiness_counts_s=0,
    )


@pytest.fixture
def client(sqlite_ledger: Ledger, everything: Everything, clock: Clock) -> Iterator[FlaskClient]:
    with create_app(sqlite_ledger, sources(sqlite_ledger, everything, clock), World()).test_client() as client:
        yield client


def lose_the_database(engine: Engine, folder: Path) -> None:
    engine.dispose()
    for file in folder.glob("service.db*"):
        file.unlink()
    (folder / "service.db").mkdir()


def test_a_customer_sees_balance_entries_and_the_rule(client: FlaskClient, sqlite_ledger: Ledger) -> None:
    credit(sqlite_ledger, [a_credit("1", amount_cents=250), a_credit("2", amount_cents=399)])
    answer = client.get("/customers/ada/credit").json
    assert (answer["customer"], answer["points"]) == ("ada", 5)
    assert answer["rule"] == "one credit point for each full unit of currency"
    assert [(entry["order_id"], entry["points"]) for entry in answer["entries"]] == [("2", 3), ("1", 2)]


def test_only_the_last_entries_are_shown(client: FlaskClient, sqlite_ledger: Ledger) -> None:
    credit(sqlite_ledger, [a_credit(str(number)) for number in range(5)])
    answer = client.get("/customers/ada/credit?limit=2").json
    assert len(answer["entries"]) == 2
    assert answer["points"] == 5 * 25


def test_one_order_s_credit_is_the_sum_of_its_entries(client: FlaskClient, sqlite_ledger: Ledger) -> None:
    credit(sqlite_ledger, [a_credit("1", amount_cents=250), a_credit("2"), a_reversal("1", amount_cents=250)])
    answer = client.get("/orders/1/credit").json
    assert (answer["order_id"], answer["customer"], answer["points"]) == ("1", "ada", 0)
    assert [(entry["kind"], entry["points"]) for entry in answer["entries"]] == [("credit", 2), ("reversal", -2)]
    entry = answer["entries"][0]
    assert (entry["message_id"], entry["transaction_id"]) == ("message", "transaction")
    assert entry["created_at"].endswith("Z")


def test_the_credit_of_an_order_with_the_longest_id_is_found(client: FlaskClient, sqlite_ledger: Ledger) -> None:
    credit(sqlite_ledger, [a_credit("x" * 36)])
    assert client.get(f"/orders/{'x' * 36}/credit").status_code == 200


def test_a_customer_with_a_slash_in_the_name_is_found(client: FlaskClient, sqlite_ledger: Ledger) -> None:
    credit(sqlite_ledger, [a_credit(customer="a/b c")])
    assert client.get("/customers/a%2Fb%20c/credit").json["customer"] == "a/b c"


@pytest.mark.parametrize(
    "path",
    [
        *("/customers/nobody/credit", "/customers/%00/credit", "/customers//credit", "/nothing"),
        *(f"/orders/{order_id}/credit" for order_id in ("none", "%00", "x" * 99)),
    ],
)
def test_a_customer_or_an_order_without_a_credit_is_404(client: FlaskClient, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.content_type) == (404, "application/problem+json")


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x"])
def test_a_wrong_parameter_is_400_naming_it(client: FlaskClient, query: str) -> None:
    answer = client.get(f"/customers/ada/credit?{query}")
    assert (answer.status_code, answer.json["errors"][0]["field"]) == (400, "limit")


def test_a_database_that_does_not_answer_is_503(client: FlaskClient, sqlite_engine: Engine) -> None:
    with sqlite_engine.begin() as connection:
        connection.execute(text("ALTER TABLE balances RENAME TO gone"))
    assert client.get("/customers/ada/credit").status_code == 503


WORKER = {"name": "one", "pid": 7, "processes": 2, "age_s": 60.0, "idle_s": 1.5, "takes_tasks": True}
EMPTY = {"waiting": 0, "failed": 0, "parked": 0, "oldest_s": None, "last_error": None}
ALL_IS_WELL = {
    "status": "ok",
    "database": "ok",
    "redis": "ok",
    "broker": "ok",
    "workers": [WORKER],
    "inbox": EMPTY,
    "queues": 1,
    "standing_still": [],
    "attention": [],
    "missing": [],
}


MEANWHILE = "Until then messages wait at the broker or in the inbox, and none is lost."
OF_BROKER = f"broker: the broker is away. Run rocketmq-admin doctor to check name server and broker. {MEANWHILE}"
OF_REDIS = f"workers: Redis does not answer: connection refused. Start Redis, or a credit_service.worker. {MEANWHILE}"
OF_WORKERS = f"workers: no worker is alive. Start Redis, or a credit_service.worker. {MEANWHILE}"
OF_TASKS = f"workers: no worker takes the waiting tasks. Start Redis, or a credit_service.worker. {MEANWHILE}"


def test_health_tells_everything_in_detail(client: FlaskClient) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json) == (200, ALL_IS_WELL)


STILL = {"topic": "orders", "broker": "broker-a", "queue_id": 3, "unacknowledged": 40, "for_s": 121.0}


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("is_broker_up", False, {"broker": "unreachable", "missing": [OF_BROKER]}),
        ("is_redis_up", False, {"redis": "unreachable", "workers": [], "missing": [OF_REDIS]}),
        ("workers", [], {"workers": [], "missing": [OF_WORKERS]}),
        ("stands_still_s", 121.0, {"standing_still": [STILL]}),
    ],
)
def test_health_is_degraded_and_names_what_does_not_answer_or_stands_still(
    client: FlaskClient, everything: Everything, name: str, value: object, shown: dict[str, object]
) -> None:
    setattr(everything, name, value)
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json) == (503, ALL_IS_WELL | {"status": "degraded"} | shown)


def test_health_is_degraded_while_no_worker_takes_the_tasks_that_wait(client: FlaskClient, everything: Everything) -> None:
    stopped = LivingWorker("one", pid=7, processes=2, age_s=60, idle_s=TAKES_NONE_AFTER_S, takes_tasks=False)
    everything.workers = [stopped]
    answer = client.get("/healthz")
    shown = WORKER | {"idle_s": TAKES_NONE_AFTER_S, "takes_tasks": False}
    degraded = ALL_IS_WELL | {"status": "degraded", "workers": [shown], "missing": [OF_TASKS]}
    assert (answer.status_code, answer.json) == (503, degraded)
    everything.workers = [stopped, LivingWorker("two", pid=8, processes=2, age_s=60, idle_s=1, takes_tasks=True)]
    assert client.get("/healthz").status_code == 200


def test_health_is_degraded_while_orders_wait_for_too_long(client: FlaskClient, sqlite_ledger: Ledger, clock: Clock) -> None:
    sqlite_ledger.store(orders(40))
    clock.pass_s(30)
    shown = EMPTY | {"waiting": 40, "oldest_s": 30.0}
    assert client.get("/healthz").json == ALL_IS_WELL | {"inbox": shown}
    clock.pass_s(1.25)
    missing = [f"orders: 40 messages wait to be processed, the oldest for 31 s. The workers' log says why. {MEANWHILE}"]
    answer = client.get("/healthz")
    shown = EMPTY | {"waiting": 40, "oldest_s": 31.2}
    assert (answer.status_code, answer.json) == (503, ALL_IS_WELL | {"status": "degraded", "inbox": shown, "missing": missing})
    answer = client.get("/readyz")
    assert (answer.status_code, [error["field"] for error in answer.json["errors"]]) == (503, ["orders"])
    drain(sqlite_ledger)
    assert client.get("/healthz").json == ALL_IS_WELL


@pytest.mark.parametrize(("count", "status"), [(2, (503, "degraded")), (1, (200, "attention"))])
def test_a_database_that_refuses_several_orders_and_takes_none_is_no_health(
    client: FlaskClient, sqlite_ledger: Ledger, sqlite_engine: Engine, clock: Clock, count: int, status: tuple[int, str]
) -> None:
    """Health is degraded if several orders are refused and none is stored; one refused order needs attention."""
    refuse(sqlite_engine, 0)
    sqlite_ledger.store(orders(count))
    for _ in range(6):
        drain(sqlite_ledger, max_tries=1)
        clock.pass_s(1)
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json["status"]) == status
    assert answer.json["inbox"] == {
        "waiting": count, "failed": count, "parked": 0, "oldest_s": 6.0, "last_error": "IntegrityError: no",
    }  # fmt: skip


def test_health_asks_for_attention_while_single_orders_fail_and_while_they_are_parked(
    client: FlaskClient, sqlite_ledger: Ledger, sqlite_engine: Engine, clock: Clock
) -> None:
    refuse(sqlite_engine, 666)
    sqlite_ledger.store([an_order(f"bad-{number}", 900 + number, amount_cents=666) for number in range(3)])
    for number in range(3):
        sqlite_ledger.store(orders(1, first=number))
        drain(sqlite_ledger, max_tries=3)
        clock.pass_s(10)
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json["status"], answer.json["inbox"]["failed"]) == (200, "attention", 3)
    assert answer.json["attention"] == ["3 messages fail, and are tried again: IntegrityError: no"]
    sqlite_ledger.store(orders(1, first=10))
    drain(sqlite_ledger, max_tries=3)
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json["status"], answer.json["inbox"]["parked"]) == (200, "attention", 3)
    (line,) = answer.json["attention"]
    assert line.startswith("3 messages are parked: list them with `python -m credit_service inbox list`")
    sqlite_ledger.inbox.dismiss([message.key for message in sqlite_ledger.inbox.parked()])
    assert client.get("/healthz").json == ALL_IS_WELL


def test_health_asks_for_attention_from_the_first_dead_letter_and_names_the_command(
    client: FlaskClient, everything: Everything
) -> None:
    everything.dead_letters = 1
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json["status"]) == (200, "attention")
    assert "1 messages of credit_service are dead letters" in answer.json["attention"][0]
    assert "dead-letters retry --group credit_service --all --dry-run" in answer.json["attention"][0]
    everything.dead_letters = None
    assert client.get("/healthz").json == ALL_IS_WELL


def test_a_service_is_ready_while_an_order_could_be_credited(client: FlaskClient, everything: Everything) -> None:
    assert (client.get("/readyz").status_code, client.get("/readyz").json) == (200, {"status": "ok"})
    everything.is_broker_up = everything.is_redis_up = False
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json["title"]) == (503, "Not ready")
    assert answer.json["detail"] == f"{OF_BROKER} {OF_REDIS}"


def test_credits_are_read_although_nothing_but_the_database_is_there(
    client: FlaskClient, sqlite_ledger: Ledger, everything: Everything
) -> None:
    credit(sqlite_ledger, [a_credit("1")])
    everything.is_broker_up = everything.is_redis_up = False
    assert client.get("/customers/ada/credit").status_code == 200


def test_a_service_without_its_database_lives_but_is_not_ready(
    client: FlaskClient, sqlite_engine: Engine, database_folder: Path
) -> None:
    lose_the_database(sqlite_engine, database_folder)
    answer = client.get("/readyz")
    assert (answer.status_code, [error["field"] for error in answer.json["errors"]]) == (503, ["database"])
    assert client.get("/healthz").status_code == 503
    answer = client.get("/livez")
    assert (answer.status_code, answer.json) == (200, {"status": "ok"})


def test_names_that_were_given_are_answered(sqlite_ledger: Ledger, everything: Everything, clock: Clock) -> None:
    health, hosts = sources(sqlite_ledger, everything, clock), KnownHosts.of("0.0.0.0", "credit-service")
    app = create_app(sqlite_ledger, health, World(), hosts=hosts)
    with app.test_client() as client:
        names = ("credit-service:8081", "localhost:49153", "172.18.0.5:8081", "order-service:8081")
        assert [client.get("/healthz", headers={"Host": host}).status_code for host in names] == [200, 200, 200, 421]
