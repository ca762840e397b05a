"""What the demo does, step by step: on this machine with kills, or on services that run already without them."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from demo.books import Books
from demo.commit_log import Trace, read_traces
from demo.orders import OrderAnswer, OrderClient, Outcome, make_orders, place_all
from demo.processes import Process, Processes
from demo.story import choose_story, story_table
from demo.supervisor import Supervisor
from demo.system import QUICK_CHECKS, System

LIMIT_CENTS = 1_000_000
"""Orders above it fail in the local transaction; the order service takes it from ORDER_LIMIT_CENTS."""
SETTLE_SECONDS = 180
RECONCILE_SECONDS = 300


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
            placed = _place(plan, OrderClient(system.order_url), console, kill_halfway=system.broker)
            placed.deaths_ms = supervisor.deaths_ms
            _tell_placed(placed, console)
            is_settled = _settle(books, console)
        _tell_transactions(books, read_traces(system.broker_store / "store"), placed, console)
        return _judge(books, placed, is_settled, system.environment, processes, console)


def run_on_compose(plan: Plan, environment: Mapping[str, str], console: Console) -> int:
    """The same on services that run already: nothing is started or killed. Answers the exit code."""
    books = Books(environment["ORDER_DATABASE_URL"], environment["CREDIT_DATABASE_URL"])
    client = OrderClient(environment.get("ORDER_SERVICE_URL", "http://127.0.0.1:8080"))
    store = environment.get("BROKER_STORE")
    with Processes(Path("/tmp")) as processes:
        placed = _place(plan, client, console, kill_halfway=None)
        _tell_placed(placed, console)
        is_settled = _settle(books, console)
        if store:
            _tell_transactions(books, read_traces(Path(store)), placed, console)
        return _judge(books, placed, is_settled, environment, processes, console)


def _start(system: System, console: Console) -> None:
    timeout_s, interval_s = (int(QUICK_CHECKS[name]) // 1000 for name in ("transactionTimeOut", "transactionCheckInterval"))
    console.print(
        f"The broker checks back {timeout_s} s after a half message and looks every {interval_s} s, "
        "so that nobody waits: RocketMQ's defaults are 6 s and 60 s."
    )
    with console.status("Starting broker, order service, credit service, Celery worker and Redis"):
        started = time.monotonic()
        system.start()
    for process in (system.broker, *system.services):
        console.print(f"  {process.name:15} process {process.pid}", highlight=False)
    console.print(f"Started in {time.monotonic() - started:.1f} s.")


def _place(plan: Plan, client: OrderClient, console: Console, *, kill_halfway: Process | None) -> Placed:
    requests = list(make_orders(plan.orders, refused_every=plan.refused_every, limit_cents=LIMIT_CENTS))
    with _progress(console) as progress:
        task = progress.add_task("placing orders", total=len(requests))
        answered = 0

        def on_answer(answer: OrderAnswer) -> None:
            nonlocal answered
            answered += 1
            progress.advance(task)
            if kill_halfway is not None and answered == len(requests) // 2:
                progress.console.print(f"SIGKILL to the broker (process {kill_halfway.pid}); starting it again")
                kill_halfway.kill()
                kill_halfway.start()

        answers, seconds = place_all(client, requests, concurrency=plan.concurrency, on_answer=on_answer)
    return Placed(answers, seconds)


def _settle(books: Books, console: Console) -> bool:
    """Wait until there are as many credits as orders; whether that came to pass."""
    deadline = time.monotonic() + SETTLE_SECONDS
    with _progress(console) as progress:
        task = progress.add_task("orders credited", total=books.placed())
        while (credited := books.credited()) < (placed := books.placed()):
            progress.update(task, completed=credited, total=placed)
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        progress.update(task, completed=credited, total=placed)
    return True


def _tell_placed(placed: Placed, console: Console) -> None:
    repeated = sum(answer.attempts > 1 for answer in placed.answers)
    console.print(
        f"{placed.count(Outcome.PLACED)} orders placed and {placed.count(Outcome.REFUSED)} refused in {placed.seconds:.1f} s: "
        f"{placed.count(Outcome.PLACED) / placed.seconds:.0f} orders/s, restarts included; "
        f"{repeated} had to be asked for more than once, under the same Idempotency-Key."
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


def _judge(
    books: Books, placed: Placed, is_settled: bool, environment: Mapping[str, str], processes: Processes, console: Console
) -> int:
    """Compare answers, orders and credits, then let Spark do it independently; 0 only if both find nothing wrong."""
    in_database = set(books.orders())
    told = {answer.order_id for answer in placed.answers if answer.outcome is Outcome.PLACED}
    if not told <= in_database:
        console.print(f"[red]{len(told - in_database)} orders were answered as placed and are not in the database.[/red]")
    if not is_settled:
        console.print(f"[red]Orders without credit after {SETTLE_SECONDS} s.[/red]")
    books.close()
    verdict = _reconcile(environment, processes, console)
    return verdict or int(not is_settled or not told <= in_database)


def _reconcile(environment: Mapping[str, str], processes: Processes, console: Console) -> int:
    """Run the Spark job, show what it prints, and answer its exit code."""
    arguments = [sys.executable, "-m", "pipelines", "reconcile", "--grace-seconds", "0"]
    for option in ("order-database-url", "credit-database-url"):
        arguments += [f"--{option}", environment[option.upper().replace("-", "_")]]
    job = processes.add("reconciliation", arguments)
    with console.status("Spark compares both databases"):
        job.spawn()
        exit_code = job.wait(RECONCILE_SECONDS)
    console.print(job.output(), highlight=False, markup=False)
    return exit_code


def _progress(console: Console) -> Progress:
    return Progress(TextColumn("{task.description:16}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console)
