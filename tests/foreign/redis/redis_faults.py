"""Injects faults into Redis while orders are placed, and prints the outcome: python -m tests.foreign.redis.redis_faults --help.

Each fault has its own system. Orders are placed before, during and after the fault.
"""

import argparse
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx
from redis import Redis, RedisError
from sqlalchemy import Engine, create_engine

from demo.books import ShopBooks
from demo.orders import OrderClient, make_orders
from demo.ports import free_ports
from demo.processes import Processes
from demo.system import Ports, System
from tests.postgresql_server import new_database

SETTLE_S: Final = 150.0
"""How long after the fault the last credit may come."""
_NO_LIMIT_CENTS: Final = 10**9


class Relay:
    """A relay for bytes between clients and Redis. While `harm` is set, the relay damages Redis's replies."""

    def __init__(self, redis_port: int) -> None:
        """Listens on a free port."""
        self._redis_port = redis_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self.harm: Callable[[bytes], tuple[bytes, bool | None]] | None = None
        """What an answer becomes, and what follows: True cuts the connection, None leaves it open and silent for ever."""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stops accepting connections."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._redis_port))
                except OSError:
                    client.close()
                    continue
                threading.Thread(target=self._carry, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._carry, args=(server, client, True), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        is_silent = False
        with suppress(OSError):
            while data := source.recv(65536):
                if is_silent:
                    continue
                harm = self.harm if is_answer else None
                if harm is not None:
                    data, ends = harm(data)
                    target.sendall(data)
                    if ends:
                        break
                    is_silent = ends is None
                else:
                    target.sendall(data)
        for side in (source, target):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)


@contextmanager
def locked_against_credits(engine: Engine) -> Iterator[None]:
    """Locks the credits during the block, so that no other program can write a credit."""
    with engine.connect() as lock:
        if engine.dialect.name == "sqlite":
            lock.connection.driver_connection.execute("BEGIN IMMEDIATE")
        else:
            lock.exec_driver_sql("LOCK TABLE credits")
        yield
        lock.connection.driver_connection.rollback()


@dataclass
class Stage:
    """A system that reaches Redis through the relay."""

    system: System
    relay: Relay
    redis: Redis

    def stop_redis_for(self, seconds: float) -> None:
        """Suspends Redis. The kernel still accepts connections, but Redis does not reply."""
        os.kill(self.system.redis.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.system.redis.pid, signal.SIGCONT)

    def harm_answers_for(self, seconds: float, harm: Callable[[bytes], tuple[bytes, bool | None]]) -> None:
        self.relay.harm = harm
        time.sleep(seconds)
        self.relay.harm = None

    @contextmanager
    def credits_under_way(self) -> Iterator[None]:
        """Locks the credits before the block begins, so that tasks wait for the lock. Releases the lock a second later."""
        engine = create_engine(self.system.credit_database_url)
        with ExitStack() as locked:
            locked.enter_context(locked_against_credits(engine))
            time.sleep(0.5)
            release = threading.Timer(1, locked.close)
            release.start()
            yield
            release.join()
        engine.dispose()


def _hang(stage: Stage) -> None:
    stage.stop_redis_for(40)


def _hang_shortly(stage: Stage) -> None:
    stage.stop_redis_for(8)


def _hang_again_and_again(stage: Stage) -> None:
    for _ in range(4):
        stage.stop_redis_for(7)
        time.sleep(2)


def _cut_answers(stage: Stage) -> None:
    stage.harm_answers_for(10, lambda answer: (answer[: len(answer) // 2], True))


def _half_answers_and_silence(stage: Stage) -> None:
    stage.harm_answers_for(15, lambda answer: (answer[: len(answer) // 2], None))


def _swallow_answers(stage: Stage) -> None:
    stage.harm_answers_for(15, lambda answer: (b"", None))


def _cut_now_and_then(stage: Stage) -> None:
    count = iter(range(10**9))

    def harm(answer: bytes) -> tuple[bytes, bool | None]:
        return (answer[: len(answer) // 2], True) if next(count) % 7 == 6 else (answer, False)

    stage.harm_answers_for(20, harm)


def _forget(stage: Stage) -> None:
    for _ in range(20):
        stage.redis.flushall()
        time.sleep(0.5)


def _restart(stage: Stage) -> None:
    for _ in range(3):
        stage.system.redis.kill()
        time.sleep(2)
        stage.system.redis.start()
        time.sleep(2)


def _full(stage: Stage) -> None:
    stage.redis.config_set("maxmemory", 1)
    time.sleep(15)
    stage.redis.config_set("maxmemory", 0)


def _read_only(stage: Stage) -> None:
    (port,) = free_ports(1)
    stage.redis.replicaof("127.0.0.1", port)
    time.sleep(15)
    stage.redis.replicaof("NO", "ONE")


def _disconnects(stage: Stage) -> None:
    for _ in range(10):
        with suppress(RedisError):
            stage.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        time.sleep(1)


FAULTS: Final[dict[str, Callable[[Stage], None]]] = {
    "hangs-40-s": _hang,
    "hangs-8-s": _hang_shortly,
    "hangs-4-times-7-s": _hang_again_and_again,
    "cuts-answers": _cut_answers,
    "cuts-each-7th": _cut_now_and_then,
    "half-answers": _half_answers_and_silence,
    "no-answers": _swallow_answers,
    "forgets-all": _forget,
    "restarts": _restart,
    "is-full": _full,
    "is-read-only": _read_only,
    "disconnects": _disconnects,
}


@dataclass
class Told:
    """The number of reports of a fault, from its beginning until the last credit."""

    words: Counter[str] = field(default_factory=Counter)

    def look(self, system: System) -> None:
        with suppress(httpx.HTTPError):
            answer = httpx.get(f"{system.credit_url}/healthz", timeout=5)
            body = answer.json()
            self.words[f"health {answer.status_code} {body['status']}"] += answer.status_code != httpx.codes.OK
            self.words["waiting"] += body["inbox"] is not None and body["inbox"]["waiting"] > 0
            self.words["no-worker"] += not body["workers"]
            self.words["workers-take-none"] += any(not worker["takes_tasks"] for worker in body["workers"])

    def read_logs(self, system: System) -> None:
        self.words["log:service"] += "tasks for the workers: trying again" in system.credit_service.output()
        self.words["log:worker"] += "Connection to broker lost" in system.worker.output()

    def __str__(self) -> str:
        return ", ".join(sorted(word for word, count in self.words.items() if count)) or "nobody"


@dataclass(frozen=True)
class Row:
    """The outcome of the orders under one fault."""

    fault: str
    database: str
    orders: int
    credits: int
    lost: int
    twice: int
    settled_s: float | None
    """From the end of the fault to the last credit of the orders placed; None if that never came."""
    told: str


def run(fault: str, home: Path, *, on_postgresql: bool) -> Row:
    """Places orders continuously and injects the fault in the middle. Returns the outcome."""
    database_urls = [new_database(), new_database()] if on_postgresql else [None, None]
    with Processes(home / "logs") as processes, _stage(processes, home, *database_urls) as stage:
        system = stage.system
        system.start()
        told, over = Told(), threading.Event()
        looking = threading.Thread(target=_keep_looking, args=(told, system, over))
        ordering = threading.Event()
        placed: list[str] = []
        customers = [threading.Thread(target=_keep_ordering, args=(system, ordering, placed, seed)) for seed in range(4)]
        for thread in (looking, *customers):
            thread.start()
        time.sleep(4)
        with stage.credits_under_way():
            FAULTS[fault](stage)
        ended = time.monotonic()
        time.sleep(4)
        ordering.set()
        for customer in customers:
            customer.join()
        with ShopBooks(system.order_database_url, system.credit_database_url) as books:
            deadline = time.monotonic() + SETTLE_S
            while (missing := set(placed) - {credit.order_id for credit in books.credits()}) and time.monotonic() < deadline:
                time.sleep(0.5)
            settled_s = None if missing else time.monotonic() - ended
            credits = Counter(credit.order_id for credit in books.credits())
        over.set()
        looking.join()
        told.read_logs(system)
        return Row(
            fault, "PostgreSQL" if on_postgresql else "SQLite", len(placed), len(credits), len(missing),
            sum(count > 1 for count in credits.values()), settled_s, str(told),
        )  # fmt: skip


@contextmanager
def _stage(processes: Processes, home: Path, order_url: str | None, credit_url: str | None) -> Iterator[Stage]:
    (redis_port,) = free_ports(1)
    relay = Relay(redis_port)
    credit = {"REDIS_URL": f"redis://127.0.0.1:{relay.port}/0", "CREDIT_METRICS_ENABLED": "true"}
    order = {}
    if credit_url and order_url:
        credit["CREDIT_DATABASE_URL"], order["ORDER_DATABASE_URL"] = credit_url, order_url
    ports = Ports.free()._replace(redis=redis_port)
    system = System(processes, home, order_environment=order, credit_environment=credit, ports=ports)
    if credit_url and order_url:
        system.credit_database_url, system.order_database_url = credit_url, order_url
    with Redis(port=redis_port) as redis:
        try:
            yield Stage(system, relay, redis)
        finally:
            relay.close()


def _keep_ordering(system: System, end: threading.Event, placed: list[str], seed: int) -> None:
    with OrderClient(system.order_url) as client:
        for request in make_orders(10**6, refused_every=10**9, limit_cents=_NO_LIMIT_CENTS, seed=seed):
            answer = client.place(request)
            assert answer.order_id is not None
            placed.append(answer.order_id)
            if end.wait(0.1):
                return


def _keep_looking(told: Told, system: System, over: threading.Event) -> None:
    while not over.wait(0.5):
        told.look(system)


def main() -> int:
    """Runs the faults and prints the table. Returns the exit status: 0 if no credit is lost or doubled."""
    parser = argparse.ArgumentParser(prog="python -m tests.foreign.redis.redis_faults", description=__doc__)
    parser.add_argument("faults", nargs="*", help=f"of {', '.join(FAULTS)}; all unless given")
    parser.add_argument("--postgresql", action="store_true", help="both services on PostgreSQL instead of SQLite")
    arguments = parser.parse_args()
    print(
        f"{'fault':20} {'database':10} {'orders':>7} {'credits':>8} {'lost':>5} {'twice':>6} {'all there after':>16}  told by",
        flush=True,
    )
    is_whole = True
    for fault in arguments.faults or FAULTS:
        with tempfile.TemporaryDirectory(prefix="redis-faults-", ignore_cleanup_errors=True) as home:
            row = run(fault, Path(home), on_postgresql=arguments.postgresql)
        after = "never" if row.settled_s is None else f"{row.settled_s:.0f} s"
        print(
            f"{row.fault:20} {row.database:10} {row.orders:7} {row.credits:8} {row.lost:5} {row.twice:6} {after:>16}  {row.told}",
            flush=True,
        )
        is_whole = is_whole and not row.lost and not row.twice
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
