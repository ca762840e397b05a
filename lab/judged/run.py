"""Runs the shop with customers, consumers and faults, and returns its history."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from demo.books import CREDIT_DATABASE, ORDER_DATABASE, database
from demo.processes import Processes
from lab.judged.brokers import JudgedBroker, Victim, started_system
from lab.judged.consumers import JudgedConsumers, read_queues
from lab.judged.customers import JudgedCustomers
from lab.judged.databases import ShopState, watch_credits
from lab.judged.faults import JudgedFaults
from lab.judged.observations import Observations, ObservedEnd, ObservedRequest, timed
from lab.judged.operations import JudgedOperation, operations_of
from order_messages.states import TransactionState

MAX_SETTLING_S = 180
"""The time after the last fault in which every committed order is to be delivered and credited."""
_TOLD_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """The history of a run, with its counts."""

    history: list[JudgedOperation]
    responses: Mapping[str, int]
    """The number of customers' requests by status, or `none`. Only 200, 201 and 409 say what happened."""
    faults: Mapping[str, int]


def run(home: Path, broker: JudgedBroker, seconds: float, seed: int, tell: Callable[[str], None]) -> JudgedRun:
    """Runs the shop on the broker for some seconds, and until nothing is left to do. Tells each minute how far it is."""
    chance, observations = random.Random(seed), Observations()
    with Processes(home / "logs") as processes, started_system(processes, home, broker) as (system, victim):
        state = ShopState(
            database(ORDER_DATABASE, system.order_database_url), database(CREDIT_DATABASE, system.credit_database_url)
        )
        services = (system.order_service, system.credit_service, system.worker)
        faults = JudgedFaults(
            ({"broker": victim}, {service.name: Victim.of(service) for service in services}), observations, chance
        )
        consumers = JudgedConsumers(system.namesrv_addr, observations, state, chance)
        with ThreadPoolExecutor() as pool:
            watching = [pool.submit(consumers.run), pool.submit(watch_credits, state, observations)]
            acting = [pool.submit(JudgedCustomers(system.order_url, observations, chance).run), pool.submit(faults.run)]
            try:
                play_for(seconds, [*watching, *acting], lambda: tell(_progress(observations, faults)))
                observations.is_over.set()
                for actor in acting:
                    actor.result()
                _wait_until_settled(state, consumers, watching)
                end = _end(system.namesrv_addr, state, observations)
            finally:
                observations.is_over.set()
                observations.is_settled.set()
            for watcher in watching:
                watcher.result()
    responses = Counter(str(one.status).lower() for one in observations.found if isinstance(one, ObservedRequest))
    return JudgedRun(operations_of(observations.found, end), responses, faults.played)


def play_for(seconds: float, tasks: Sequence[Future[None]], tell: Callable[[], None]) -> None:
    """Waits, and calls `tell` each minute. Raises the error of a task as soon as it fails."""
    ends_s = time.monotonic() + seconds
    while (left_s := ends_s - time.monotonic()) > 0:
        _rest(min(left_s, _TOLD_EVERY_S), tasks)
        tell()


def _rest(seconds: float, tasks: Iterable[Future[None]]) -> None:
    """Waits, but raises the error of a task as soon as it fails."""
    for task in wait(tasks, timeout=seconds, return_when=FIRST_EXCEPTION).done:
        task.result()


def _progress(observations: Observations, faults: JudgedFaults) -> str:
    requests = sum(isinstance(one, ObservedRequest) for one in observations.found)
    return f"{requests:,} requests, {faults.played.total():,} faults"


def _wait_until_settled(state: ShopState, consumers: JudgedConsumers, watching: Iterable[Future[None]]) -> None:
    """Waits until all consumers have all committed orders, but not forever: what is missing then, the judge finds."""
    deadline = time.monotonic() + MAX_SETTLING_S
    while not _is_settled(state, consumers) and time.monotonic() < deadline:
        _rest(0.2, watching)


def _is_settled(state: ShopState, consumers: JudgedConsumers) -> bool:
    committed = state.in_state(TransactionState.COMMITTED)
    pulled = all(committed <= orders for orders in consumers.pulled)
    consumed = sum(consumers.consumed.values()) >= len(committed)
    return pulled and consumed and committed <= state.number_of_credits().keys()


def _end(namesrv_addr: str, state: ShopState, observations: Observations) -> ObservedEnd:
    queues = asyncio.run(read_queues(namesrv_addr))
    for pulls in queues.values():
        observations.found.extend(pulls)
    read = timed(lambda: (state.keys(), state.number_of_credits()))
    orders = {queue: tuple(order for pull in pulls for _, order in pull.messages) for queue, pulls in queues.items()}
    return ObservedEnd(read.at, *read.value, orders)
