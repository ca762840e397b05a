"""What the demo does, step by step: on this machine with kills, or on services that run already without them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from demo.books import Books
from demo.commit_log import Trace, read_traces
from demo.orders import OrderAnswer, OrderClient, Outcome, busiest_second, make_orders, place_all
from demo.processes import Process, Processes
from demo.progress import counting
from demo.settle import SETTLE_SECONDS, settle
from demo.story import choose_story, story_table
from demo.supervisor import Supervisor
from demo.system import QUICK_CHECKS, System
from demo.verdict import answers_hold, reconcile

LIMIT_CENTS = 1_000_000
"""Orders above it fail in the local transaction; the order service takes it from ORDER_LIMIT_CENTS."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much happens."""

    orders: int
    concurrency: int
    lost_commit_every: int
    """The order service dies between local commit and COMMIT at every so-manieth order."""
    refused_every: int = 20


@dataclass(slots=True)
class Placed:
    """What came of placing the orders."""

    answers: list[OrderAnswer]
    seconds: float
    deaths_ms: Sequence[int] = field(default_factory=list)
    """When the order service was found dead, in milliseconds since the epoch."""

    def count(self, outcome: Outcome) -> int:
        """How many orders ended like this."""
        return sum(answer.outcome is outcome for answer in self.answers)


def run_here(plan: Plan, home: Path, console: Console) -> int:
    """Start everything, place orders while processes are killed, and judge. Raises ProcessFailed; answers the exit code."""
    failpoint = f"exit-after-local-commit:every={plan.lost_commit_every}"
    order_environment = {"ORDER_LIMIT_CENTS": str(LIMIT_CENTS), "FAILPOINTS": failpoint}
    with Processes(home / "logs") as processes:
        system = System(processes, home, order_environment=order_environment)
        _start(system, console)
        books = Books(system.order_database_url, system.credit_database_url)
        with Supervisor(system.order_service) as supervisor:
            placed = _place(plan, system.order_url, console, kill_halfway=system.broker)
            placed.deaths_ms = supervisor.deaths_ms
            return _finish(placed, books, system.broker_store, home, system.environment, processes, console)


def run_on_compose(plan: Plan, home: Path, environment: Mapping[str, str], console: Console) -> int:
    """The same on services that run already: nothing is started or killed. Answers the exit code."""
    books = Books(environment["ORDER_DATABASE_URL"], environment["CREDIT_DATABASE_URL"])
    order_url = environment.get("ORDER_SERVICE_URL", "http://127.0.0.1:8080")
    store = Path(environment["BROKER_STORE"]) if "BROKER_STORE" in environment else None
    with Processes(home / "logs") as processes:
        placed = _place(plan, order_url, console, kill_halfway=None)
        return _finish(placed, books, store, home, environment, processes, console)


def _start(system: System, console: Console) -> None:
    timeout_s, interval_s = (int(QUICK_CHECKS[name]) // 1000 for name in ("transactionTimeOut", "transactionCheckInterval"))
    console.print(
        f"The broker checks back {timeout_s} s after a half message and looks every {interval_s} s, so that nobody waits: "
        "RocketMQ's defaults are 6 s and 60 s.",
        highlight=False,
    )
    started = time.monotonic()
    with console.status("Starting broker, order service, credit service, Celery worker and Redis"):
        system.start()
    names = ", ".join(f"{process.name} ({process.pid})" for process in (system.broker, *system.services))
    console.print(f"Started in {time.monotonic() - started:.1f} s, as processes of their own: {names}.", highlight=False)


def _place(plan: Plan, order_url: str, console: Console, *, kill_halfway: Process | None) -> Placed:
    requests = list(make_orders(plan.orders, refused_every=plan.refused_every, limit_cents=LIMIT_CENTS))
    with OrderClient(order_url) as client, counting(console, "orders answered", len(requests)) as show:
        answered = 0

        def on_answer(answer: OrderAnswer) -> None:
            nonlocal answered
            answered += 1
            show(answered, len(requests))
            if kill_halfway is not None and answered == len(requests) // 2:
                console.print(f"SIGKILL to the {kill_halfway.name} ({kill_halfway.pid}), and started again.", highlight=False)
                kill_halfway.kill()
                kill_halfway.start()

        answers, seconds = place_all(client, requests, concurrency=plan.concurrency, on_answer=on_answer)
    return Placed(answers, seconds)


def _finish(
    placed: Placed,
    books: Books,
    store: Path | None,
    home: Path,
    environment: Mapping[str, str],
    processes: Processes,
    console: Console,
) -> int:
    """Wait, tell what happened and judge; 0 only if nothing is wrong."""
    _tell_placed(placed, console)
    is_settled = settle(books, store, console)
    if not is_settled:
        console.print(f"[red]Not settled after {SETTLE_SECONDS} s.[/red]")
    if store is not None:
        _tell_transactions(books, read_traces(store), placed, console)
    is_true = answers_hold(placed.answers, books, console)
    books.close()
    verdict = reconcile(environment, store, home / "reconciliation", processes, console)
    return verdict or int(not (is_settled and is_true))


def _tell_placed(placed: Placed, console: Console) -> None:
    orders, refused = placed.count(Outcome.PLACED), placed.count(Outcome.REFUSED)
    repeated = sum(answer.attempts > 1 for answer in placed.answers)
    console.print(
        f"{orders} orders placed and {refused} refused in {placed.seconds:.1f} s: {orders / placed.seconds:.0f} orders/s "
        f"with all restarts, {busiest_second(placed.answers)} in the busiest second. "
        f"{repeated} were asked for more than once, under the same Idempotency-Key.",
        highlight=False,
    )
    if placed.deaths_ms:
        console.print(f"The order service died {len(placed.deaths_ms)} times between local commit and COMMIT, and was restarted.")


def _tell_transactions(books: Books, traces: Sequence[Trace], placed: Placed, console: Console) -> None:
    committed = sum(bool(trace.committed) for trace in traces)
    checked = sum(trace.checks > 0 for trace in traces)
    console.print(
        f"The commit log holds {len(traces)} half messages; {committed} were committed, {checked} of them by check-back.",
        highlight=False,
    )
    story = choose_story(traces, books.orders(), books.credits())
    if story is not None:
        console.print(story_table(story, placed.deaths_ms))
