"""Measures one case, first at a fixed rate, and then with a constant number of requests in flight."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import create_engine, text

from lab.benchmarks.orders.placing import Placing, place_at_rate, place_in_flight
from lab.benchmarks.orders.sample import Case, Sample, percentile
from lab.benchmarks.orders.system import Running, running

CREDITED_WITHIN_S: Final = 60.0
_WARM_UP_S: Final = 3.0
_LOOK_EVERY_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters that are the same for all cases."""

    rate: float
    in_flight: int
    seconds: float


def measure(case: Case, plan: Plan, home: Path) -> Sample:
    """Starts the system, measures the case, and stops the system. Raises ProcessFailed or NoPostgresql."""
    with running(case, home) as system:
        warm_up = place_in_flight(system.order_url, in_flight=plan.in_flight, seconds=_WARM_UP_S)
        _credited(system, warm_up)  # Orders that still wait for a worker would delay the first measured orders.
        steady = place_at_rate(system.order_url, rate=plan.rate, seconds=plan.seconds)
        credited = _credited(system, steady)
        before = system.cpu_s()
        busy = place_in_flight(system.order_url, in_flight=plan.in_flight, seconds=plan.seconds)
        credited_later = _credited(system, busy)
        after = system.cpu_s()
    to_credit = [credited[each.order_id] - each.began_s * 1000 for each in steady.orders if each.order_id in credited]
    to_answer = [(each.answered_s - each.began_s) * 1000 for each in steady.orders]
    placed = max(len(busy.orders), 1)
    return Sample(
        orders_per_s=len(busy.orders) / busy.seconds,
        post_ms=[percentile(to_answer, 50), percentile(to_answer, 99)],
        credit_ms=[percentile(to_credit, 50), percentile(to_credit, 99)],
        cpu_ms={name: (after[name] - used) * 1000 / placed for name, used in before.items()},
        refused=steady.refused + busy.refused,
        missing=sum(each.order_id not in credited for each in steady.orders)
        + sum(each.order_id not in credited_later for each in busy.orders),
    )


def _credited(system: Running, placing: Placing) -> dict[str, int]:
    """Waits for the credit rows of all orders, up to a time limit.

    Returns the time of each row in milliseconds, keyed by order id.
    """
    engine = create_engine(system.credit_database_url)
    wanted = {order.order_id for order in placing.orders}
    deadline = time.monotonic() + CREDITED_WITHIN_S
    try:
        while True:
            with engine.connect() as connection:
                rows = connection.execute(text("SELECT order_id, created_at_ms FROM credits"))
                credited: dict[str, int] = {row.order_id: row.created_at_ms for row in rows}
            if wanted <= credited.keys() or time.monotonic() > deadline:
                return credited
            time.sleep(_LOOK_EVERY_S)
    finally:
        engine.dispose()
