"""Runs the demo on this machine with kills, or on running services without kills."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from demo.books import ShopBooks
from demo.commit_log import Trace, read_traces_of
from demo.half_messages import Kills, Refusals, count_half_messages
from demo.main_job.report import WHERE_TO_GO_ON, counting, deaths_report, half_messages_table, losses_report, orders_report
from demo.main_job.running_services import RunningServices, check_services, services_of
from demo.main_job.supervisor import Supervisor
from demo.main_job.verdict import answers_hold, command_for_kept, reconcile
from demo.orders import OrderAnswer, OrderClient, PlacingOutcome, make_orders, place_all
from demo.processes import Processes
from demo.story import choose_story, story_table
from demo.system import QUICK_CHECKS, System

SETTLE_SECONDS = 180
_POLL_SECONDS = 0.25


LIMIT_CENTS = 1_000_000
"""The maximum total of an order in cents, set as ORDER_LIMIT_CENTS. The local transaction of a larger order fails."""


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """The size of a run of the demo, and the interval at which the order service is made to exit."""

    orders: int
    concurrency: int
    lost_commit_every: int
    """The interval N at which the order service dies. At every Nth order, it dies between local commit and COMMIT."""
    refused_every: int = 20
    brokers: int = 1
    """The number of brokers. If there are several, they run as a cluster, and one of them is killed."""


@dataclass(frozen=True, slots=True)
class PlacedOrders:
    """The placed orders, and the times at which a broker was killed."""

    answers: Sequence[OrderAnswer]
    started_ms: int
    """The time at which the first order was placed, in milliseconds since the epoch."""
    seconds: float
    broker_kills_ms: Sequence[int] = ()


def run_here(plan: DemoPlan, home: Path, console: Console, *, is_kept: bool) -> int:
    """Starts the system, places orders while processes are killed, and runs the reconciliation. Returns the exit code.

    Raises DemoError.
    """
    failpoint = f"exit-after-local-commit:every={plan.lost_commit_every}"
    order_environment = {"ORDER_LIMIT_CENTS": str(LIMIT_CENTS), "FAILPOINTS": failpoint}
    with Processes(home / "logs") as processes:
        system = System(processes, home, order_environment=order_environment, brokers=plan.brokers)
        _start(system, console)
        services = RunningServices(
            system.order_url, system.order_database_url, system.credit_database_url, system.broker_stores, system.environment
        )
        with Supervisor(system.order_service) as supervisor:
            placed = _place(plan, services, console, kill_halfway=system.kill_a_broker)
            kills = Kills(supervisor.deaths_ms, placed.broker_kills_ms)
            is_settled = _settle_and_tell(plan, placed, kills, services, console)
            exit_code = _judge(is_settled, services, home / "reconciliation", processes, console, is_kept=is_kept)
        if is_kept:
            console.print("To reconcile this run again:")
            console.print(Text(command_for_kept(home, services)), soft_wrap=True)
        return exit_code


def run_on_compose(plan: DemoPlan, home: Path, environment: Mapping[str, str], console: Console, *, is_kept: bool) -> int:
    """Places orders on running services without killing any, and runs the reconciliation. Returns the exit code.

    Raises DemoError.
    """
    services = services_of(environment)
    check_services(services)
    with Processes(home / "logs") as processes:
        placed = _place(plan, services, console, kill_halfway=None)
        is_settled = _settle_and_tell(plan, placed, Kills(), services, console)
        return _judge(is_settled, services, home / "reconciliation", processes, console, is_kept=is_kept)


def _start(system: System, console: Console) -> None:
    timeout_s, interval_s = (int(QUICK_CHECKS[name]) // 1000 for name in ("transactionTimeOut", "transactionCheckInterval"))
    console.print(
        f"The broker checks back {timeout_s} s after a half message, at intervals of {interval_s} s, to keep the demo short. "
        "RocketMQ's defaults are 6 s and 60 s.",
        highlight=False,
    )
    started = time.monotonic()
    with console.status("Starting broker, order service, credit service, Celery worker and Redis"):
        system.start()
    names = ", ".join(f"{process.name} ({process.pid})" for process in (system.broker, *system.services))
    console.print(f"Started in {time.monotonic() - started:.1f} s, as separate processes: {names}.", highlight=False)


def _place(
    plan: DemoPlan, services: RunningServices, console: Console, *, kill_halfway: Callable[[], str] | None
) -> PlacedOrders:
    requests = list(make_orders(plan.orders, refused_every=plan.refused_every, limit_cents=LIMIT_CENTS))
    started_ms = _now_ms()
    kills_ms: list[int] = []
    customers = OrderClient(services.order_url, api_key=services.api_key)
    with customers as client, counting(console, "orders answered", len(requests)) as show:
        answered = 0

        def on_answer(answer: OrderAnswer) -> None:
            nonlocal answered
            answered += 1
            show(answered, len(requests))
            if kill_halfway is not None and answered == len(requests) // 2:
                kills_ms.append(_now_ms())
                console.print(f"SIGKILL to the {kill_halfway()}, and restarted.", highlight=False)

        answers, seconds = place_all(client, requests, concurrency=plan.concurrency, on_answer=on_answer)
    return PlacedOrders(answers, started_ms, seconds, kills_ms)


def _settle_and_tell(plan: DemoPlan, placed: PlacedOrders, kills: Kills, services: RunningServices, console: Console) -> bool:
    """Waits for the credits and prints the results.

    Returns True if each order is credited and each order reported as placed is in the database.
    """
    has_kills = bool(kills.order_service_ms or kills.broker_ms)
    for line in orders_report(placed.answers, placed.seconds, has_kills=has_kills):
        console.print(line, highlight=False)
    if kills.order_service_ms:
        console.print(deaths_report(len(kills.order_service_ms), plan.lost_commit_every), highlight=False)
    with ShopBooks(services.order_database_url, services.credit_database_url) as books:
        is_settled = settle(books, services.broker_stores, console)
        if services.broker_stores:
            traces = [
                trace for trace in read_traces_of(services.broker_stores) if trace.half.store_timestamp >= placed.started_ms
            ]
            refused = sum(answer.outcome is PlacingOutcome.REFUSED for answer in placed.answers)
            _tell_transactions(books, traces, Refusals(LIMIT_CENTS, refused), kills, console)
        return answers_hold(placed.answers, books, console) and is_settled


def _tell_transactions(books: ShopBooks, traces: Sequence[Trace], refusals: Refusals, kills: Kills, console: Console) -> None:
    half_messages = count_half_messages(traces, books.rolled_back(), refusals, kills)
    console.print(half_messages_table(half_messages))
    if losses := losses_report(half_messages):
        console.print(losses, highlight=False)
    story = choose_story(traces, books.orders(), books.credits(), kills.order_service_ms)
    if story is not None:
        console.print(story_table(story, kills.order_service_ms))


def _judge(
    is_settled: bool, services: RunningServices, output: Path, processes: Processes, console: Console, *, is_kept: bool
) -> int:
    """Runs the reconciliation. Returns 0 only if neither the reconciliation nor an earlier step found a fault."""
    verdict = reconcile(services.environment, services.broker_stores, output, processes, console, show_output=is_kept)
    console.print(WHERE_TO_GO_ON, highlight=False)
    return verdict or int(not is_settled)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def settle(books: ShopBooks, stores: Sequence[Path], console: Console) -> bool:
    """Waits until all orders are credited. After the timeout, prints the number of credited orders and returns False."""
    deadline = time.monotonic() + SETTLE_SECONDS
    with counting(console, "orders credited", books.placed()) as show:
        while (credited := books.credited()) < (placed := books.placed()) or _pending(stores):
            show(credited, placed)
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL_SECONDS)
        else:
            show(credited, placed)
            return True
    console.print(
        f"[red]After {SETTLE_SECONDS} s {credited} of {placed} orders are credited, and {_pending(stores)} half messages are "
        "not decided.[/red]"
    )
    return False


def _pending(stores: Sequence[Path]) -> int:
    """Returns the number of half messages without a decision in these stores."""
    return sum(trace.op is None for trace in read_traces_of(stores))
