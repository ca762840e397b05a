"""From an order to its credit, through every process, with what can go wrong on the way."""

import json
import os
import re
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator

import httpx
import psutil
import pytest
from redis import Redis

from demo.system import System
from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    EventLoopThread,
    NoRoute,
    Producer,
    PullConsumer,
    PushConsumer,
)
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.message.topics import dead_letter_topic
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers import QueryConsumerOffsetRequestHeader, QueryConsumerOffsetResponseHeader
from rocketmq_broker.remoting.client import RemotingClient
from service_runtime.failing.armed_failpoints import EXIT_STATUS
from tests.e2e.clients import PATIENT, running
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

ITEMS = [{"name": "tea", "quantity": 1, "price_cents": 250}]


@pytest.fixture
def system(system: System) -> System:
    """With an order service that refuses no order because the machine is slow."""
    system.order_service.environment["ORDER_SEND_TIMEOUT_MS"] = str(PATIENT["send_timeout_ms"])
    return system


@pytest.fixture
def client() -> Iterator[EventLoopThread]:
    with EventLoopThread() as loop:
        yield loop


def place(system: System, customer: str, key: str | None = None) -> httpx.Response:
    headers = {"Idempotency-Key": key} if key else {}
    body = {"customer": customer, "items": ITEMS}
    return httpx.post(f"{system.order_url}/orders", json=body, headers=headers, timeout=60)


def credit(system: System, customer: str) -> dict[str, object]:
    answer = httpx.get(f"{system.credit_url}/customers/{customer}/credit", timeout=30)
    return answer.json() if answer.status_code == httpx.codes.OK else {"points": 0, "entries": []}


def send(client: EventLoopThread, system: System, bodies: list[bytes]) -> list[str]:
    """Sends messages past the order service, as one batch; their ids."""

    async def send_all() -> str:
        async with running(Producer("tests", namesrv_addr=system.namesrv_addr, **PATIENT)) as producer:
            return (await producer.send_batch([Message.of("orders", body, tags="created") for body in bodies])).message_id

    return client.run(send_all(), timeout_s=60).split(",")


def has_dead_letters(client: EventLoopThread, system: System) -> bool:
    """Whether the credit service has any."""

    async def read() -> bool:
        async with running(PullConsumer("auditors", namesrv_addr=system.namesrv_addr)) as pull:
            try:
                queues = await pull.queues(dead_letter_topic("credit_service"))
            except NoRoute:
                return False
            return any([await pull.max_offset(queue) for queue in queues])

    return client.run(read(), timeout_s=60)


def an_order_body(order_id: str, customer: str, total_cents: int) -> bytes:
    order = {"order_id": order_id, "customer": customer, "total_cents": total_cents, "currency": "EUR", "created_at_ms": 1}
    return json.dumps(order).encode()


class DeadLetters:
    """What arrives in the credit service's dead-letter topic."""

    def __init__(self, client: EventLoopThread, system: System) -> None:
        self.bodies: list[bytes] = []
        self.reconsume_times: set[int] = set()
        self._lock = threading.Lock()
        self._client = client
        self._consumer = PushConsumer(
            "tests", namesrv_addr=system.namesrv_addr, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        )
        self._consumer.subscribe(dead_letter_topic("credit_service"))
        self._consumer.register_message_listener(self._keep)
        client.run(self._consumer.start(), timeout_s=30)

    def close(self) -> None:
        self._client.run(self._consumer.shutdown(), timeout_s=30)

    def _keep(self, messages: list[MessageExt], _context: ConsumeContext) -> ConsumeStatus:
        with self._lock:
            self.bodies += [message.body for message in messages]
            self.reconsume_times |= {message.reconsume_times for message in messages}
        return ConsumeStatus.CONSUME_SUCCESS


@pytest.fixture
def dead_letters(client: EventLoopThread, system: System) -> Iterator[DeadLetters]:
    system.credit_service.environment |= {"CREDIT_MAX_RECONSUME_TIMES": "1", "CREDIT_TASK_TIMEOUT_S": "60"}
    system.start()
    letters = DeadLetters(client, system)
    yield letters
    letters.close()


def test_an_order_becomes_a_credit(system: System) -> None:
    system.start()
    order = place(system, "ada").json()["order"]
    wait_until(lambda: credit(system, "ada")["points"] == 2)
    (entry,) = credit(system, "ada")["entries"]  # type: ignore[misc]
    assert (entry["order_id"], entry["amount_cents"]) == (order["order_id"], order["total_cents"])


def test_a_lost_commit_is_settled_by_check_back_and_repeating_the_request_orders_nothing_more(system: System) -> None:
    system.order_service.environment["FAILPOINTS"] = "exit-after-local-commit:every=1"
    system.start()
    with pytest.raises(httpx.TransportError):
        place(system, "ada", key="key-1")
    assert system.order_service.wait(timeout_s=60) == EXIT_STATUS
    system.order_service.environment["FAILPOINTS"] = ""
    system.order_service.start()
    again = place(system, "ada", key="key-1")
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (201, "true")
    wait_until(lambda: credit(system, "ada")["points"] == 2)
    assert len(httpx.get(f"{system.order_url}/orders?customer=ada", timeout=30).json()["orders"]) == 1


def cause_of_holding(system: System) -> str | None:
    """Why the credit service holds orders; None if it holds none."""
    return (httpx.get(f"{system.credit_url}/healthz", timeout=60).json()["held"] or {}).get("cause")


def wait_for_points(system: System, points: int) -> None:
    wait_until(lambda: credit(system, "ada")["points"] == points, within_s=240)
    wait_until(lambda: cause_of_holding(system) is None, within_s=240)


def place_while_away(system: System, count: int) -> None:
    assert [place(system, "ada").status_code for _ in range(count)] == [201] * count
    wait_until(lambda: cause_of_holding(system) == "outage")


def test_outages_of_redis_workers_and_database_hold_orders_and_spend_no_redelivery(
    system: System, client: EventLoopThread
) -> None:
    """With these settings each failure would send the orders to the dead letters."""
    system.credit_service.environment |= {"CREDIT_MAX_RECONSUME_TIMES": "0", "CREDIT_TASK_TIMEOUT_S": "1"}
    system.start()
    place(system, "ada")
    wait_until(lambda: credit(system, "ada")["points"] == 2)

    system.redis.kill()
    place_while_away(system, 5)
    system.redis.start()
    wait_for_points(system, 12)

    system.worker.kill()
    place_while_away(system, 5)
    system.worker.start()
    wait_for_points(system, 22)

    with sqlite3.connect(system.credit_database_url.removeprefix("sqlite:///")) as database:
        database.execute("ALTER TABLE balances RENAME TO balances_away")
        place_while_away(system, 5)
        database.execute("ALTER TABLE balances_away RENAME TO balances")
    wait_for_points(system, 32)

    wait_until(lambda: httpx.get(f"{system.credit_url}/healthz", timeout=60).is_success)
    assert not has_dead_letters(client, system)
    log = system.credit_service.output()
    assert log.count(" orders are held: ") == log.count("no order is held any more") >= 3


def test_orders_that_are_held_when_the_service_stops_are_credited_by_the_next_one(
    system: System, client: EventLoopThread
) -> None:
    system.credit_service.environment |= {"CREDIT_MAX_RECONSUME_TIMES": "0", "CREDIT_TASK_TIMEOUT_S": "1"}
    system.start()
    system.worker.stop()
    place_while_away(system, 5)
    system.credit_service.stop(timeout_s=60)
    assert "left to be delivered again" in system.credit_service.output()
    assert "did not shut down cleanly" not in system.credit_service.output()
    system.worker.start()
    system.credit_service.start()
    wait_until(lambda: credit(system, "ada")["points"] == 10, within_s=240)
    assert not has_dead_letters(client, system)


def test_a_batch_under_way_when_the_service_stops_is_finished_and_acknowledged(system: System, client: EventLoopThread) -> None:
    patient = {"CREDIT_TASK_TIMEOUT_S": "200", "CREDIT_STOP_TIMEOUT_S": "200"}
    system.credit_service.environment |= {**patient, "CREDIT_MAX_RECONSUME_TIMES": "0"}
    system.start()
    place(system, "ada")
    wait_until(lambda: acknowledged(client, system) == 1)
    at_work = psutil.Process(system.worker.pid).children()
    for process in at_work:
        process.suspend()
    place(system, "ada")
    wait_until(lambda: tasks_under_way(system) == 1)
    os.kill(system.credit_service.pid, signal.SIGTERM)
    time.sleep(1)
    assert system.credit_service.is_running
    for process in at_work:
        process.resume()
    assert system.credit_service.wait(timeout_s=120) == 0
    assert acknowledged(client, system) == 2
    assert not has_dead_letters(client, system)


def tasks_under_way(system: System) -> int:
    """How many the worker has taken and not ended."""
    with Redis.from_url(system.environment["REDIS_URL"]) as redis:
        return int(redis.hlen("unacked"))


def acknowledged(client: EventLoopThread, system: System) -> int:
    """How far the credit service has come in all queues; asked without a client, which would be a member of its group."""
    (address,) = re.findall(r"The broker\[\S+ (\S+)\] boot success", system.broker.output())

    async def read() -> int:
        remoting = RemotingClient()
        found = 0
        for queue_id in range(4):
            header = QueryConsumerOffsetRequestHeader(consumer_group="credit_service", topic="orders", queue_id=queue_id)
            answer = await remoting.invoke(address, RequestCode.QUERY_CONSUMER_OFFSET, header, timeout_ms=30_000)
            if answer.code == ResponseCode.SUCCESS:
                found += answer.decode_header(QueryConsumerOffsetResponseHeader).offset
        await remoting.close()
        return found

    return client.run(read(), timeout_s=60)


def test_messages_that_are_no_orders_go_to_the_dead_letters_at_once_and_hold_up_nobody(
    system: System, client: EventLoopThread, dead_letters: DeadLetters
) -> None:
    send(client, system, [an_order_body("0", "ada", 100)])
    wait_until(lambda: credit(system, "ada")["points"] == 1)
    poison = [b"{", b'{"order_id": "without the rest"}']
    send(client, system, [an_order_body("1", "ada", 100), *poison, an_order_body("2", "ada", 100)])
    wait_until(lambda: credit(system, "ada")["points"] == 3)
    wait_until(lambda: len(dead_letters.bodies) == len(poison), within_s=120)
    assert sorted(dead_letters.bodies) == sorted(poison)
    assert dead_letters.reconsume_times == {1}, "given back once, and never delivered again"


def test_a_redelivery_changes_nothing_and_another_amount_is_parked(
    system: System, client: EventLoopThread, dead_letters: DeadLetters
) -> None:
    send(client, system, [an_order_body("1", "ada", 100)])
    wait_until(lambda: credit(system, "ada")["points"] == 1)
    send(client, system, [an_order_body("1", "ada", 100), an_order_body("1", "ada", 900), an_order_body("2", "ada", 100)])
    wait_until(lambda: credit(system, "ada")["points"] == 2)
    wait_until(lambda: bool(dead_letters.bodies), within_s=120)
    assert dead_letters.bodies == [an_order_body("1", "ada", 900)]
    assert credit(system, "ada")["points"] == 2
