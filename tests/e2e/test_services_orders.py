"""From an order to its credit, through every process, with what can go wrong on the way."""

import json
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from broker.client import ConsumeContext, ConsumeFromWhere, ConsumeStatus, EventLoopThread, Producer, PullConsumer, PushConsumer
from broker.message import Message, MessageExt
from broker.message.topics import dead_letter_topic, retry_topic
from demo.system import System
from order_service.failpoints import EXIT_STATUS
from tests.e2e.clients import PATIENT, running

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


def wait_until(is_so: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, f"not so after {timeout_s:g} s"
        time.sleep(0.2)


def send(client: EventLoopThread, system: System, bodies: list[bytes]) -> list[str]:
    """Sends messages past the order service, as one batch; their ids."""

    async def send_all() -> str:
        async with running(Producer("tests", namesrv_addr=system.namesrv_addr, **PATIENT)) as producer:
            return (await producer.send_batch([Message.of("orders", body, tags="created") for body in bodies])).message_id

    return client.run(send_all(), timeout_s=60).split(",")


def redelivered(client: EventLoopThread, system: System) -> list[MessageExt]:
    """What the credit service has given back and got again."""

    async def read() -> list[MessageExt]:
        async with running(PullConsumer("auditors", namesrv_addr=system.namesrv_addr)) as pull:
            (queue,) = await pull.queues(retry_topic("credit_service"))
            return (await pull.pull(queue, 0)).messages

    return client.run(read(), timeout_s=60)


def an_order_body(order_id: str, customer: str, total_cents: int) -> bytes:
    order = {"order_id": order_id, "customer": customer, "total_cents": total_cents, "currency": "EUR", "created_at_ms": 1}
    return json.dumps(order).encode()


class DeadLetters:
    """What arrives in the credit service's dead-letter topic."""

    def __init__(self, client: EventLoopThread, system: System) -> None:
        self.bodies: list[bytes] = []
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


def test_orders_placed_while_redis_is_away_are_credited_when_it_is_back(system: System) -> None:
    system.start()
    place(system, "ada")
    wait_until(lambda: credit(system, "ada")["points"] == 2)
    system.redis.kill()
    assert [place(system, "ada").status_code for _ in range(10)] == [201] * 10
    time.sleep(2)
    system.redis.start()
    wait_until(lambda: credit(system, "ada")["points"] == 22, timeout_s=240)


def test_orders_placed_while_no_worker_runs_are_credited_when_one_does(system: System) -> None:
    system.credit_service.environment["CREDIT_TASK_TIMEOUT_S"] = "2"
    system.start()
    system.worker.kill()
    assert [place(system, "ada").status_code for _ in range(10)] == [201] * 10
    time.sleep(3)
    system.worker.start()
    wait_until(lambda: credit(system, "ada")["points"] == 20, timeout_s=240)


def test_poison_does_not_hold_up_its_batch_and_ends_with_the_dead_letters(
    system: System, client: EventLoopThread, dead_letters: DeadLetters
) -> None:
    send(client, system, [an_order_body("0", "ada", 100)])
    wait_until(lambda: credit(system, "ada")["points"] == 1)
    poison = [b"{", b'{"order_id": "without the rest"}']
    send(client, system, [an_order_body("1", "ada", 100), *poison, an_order_body("2", "ada", 100)])
    wait_until(lambda: credit(system, "ada")["points"] == 3)
    wait_until(lambda: len(dead_letters.bodies) == len(poison), timeout_s=120)
    assert sorted(dead_letters.bodies) == sorted(poison)
    again = redelivered(client, system)
    assert {message.body for message in again} == set(poison)
    credited_ms = [entry["created_at_ms"] for entry in credit(system, "ada")["entries"]]  # type: ignore[attr-defined]
    assert max(credited_ms) < min(message.store_timestamp for message in again)


def test_a_redelivery_changes_nothing_and_another_amount_is_parked(
    system: System, client: EventLoopThread, dead_letters: DeadLetters
) -> None:
    send(client, system, [an_order_body("1", "ada", 100)])
    wait_until(lambda: credit(system, "ada")["points"] == 1)
    send(client, system, [an_order_body("1", "ada", 100), an_order_body("1", "ada", 900), an_order_body("2", "ada", 100)])
    wait_until(lambda: credit(system, "ada")["points"] == 2)
    wait_until(lambda: bool(dead_letters.bodies), timeout_s=120)
    assert dead_letters.bodies == [an_order_body("1", "ada", 900)]
    assert credit(system, "ada")["points"] == 2
