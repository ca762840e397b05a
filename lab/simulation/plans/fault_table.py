"""The table of faults that the search uses. For each kind it contains the targets, weight, duration and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from lab.simulation.fault_kinds import FaultKind
from lab.simulation.shapes import NAME_SERVER, REDIS, WorldShape
from rocketmq_broker.world import Chance

Draw: TypeAlias = Callable[[Chance], Any]
"""A function that draws a value."""
Targets: TypeAlias = Callable[[WorldShape], tuple[str, ...]]
"""A function that returns the possible targets of a kind of fault.

It returns an empty tuple if the fault cannot occur with these settings.
"""


def between(low: float, high: float) -> Draw:
    """Returns a function that draws a number between `low` and `high` from a log-uniform distribution."""
    return lambda chance: rounded(math.exp(chance.uniform(math.log(low), math.log(high))))


def evenly(low: float, high: float) -> Draw:
    """Returns a function that draws a number between `low` and `high` from a uniform distribution."""
    return lambda chance: rounded(chance.uniform(low, high))


def whole(low: int, high: int) -> Draw:
    """Returns a function that draws an integer between `low` and `high` from a log-uniform distribution."""
    return lambda chance: int(math.exp(chance.uniform(math.log(low), math.log(high + 1))))


def one_of(*values: Any) -> Draw:
    """Returns a function that draws one of these values."""
    return lambda chance: chance.choice(values)


def either_sign(draw: Draw) -> Draw:
    """Returns a function that negates the drawn number in half of the cases."""
    return lambda chance: draw(chance) * chance.choice((1, -1))


def rounded(number: float) -> float:
    """Returns the number rounded to three decimal places, as in plans."""
    return round(number, 3)


_BUSY_LINKS: Final = 3
"""The weight of links to a broker relative to links to the name server, which are idle for 30 s at a time."""
_SYNCING_MACHINES: Final = 3
"""The weight of power failures of brokers' machines relative to other machines, which have no data on disk."""


def _brokers(shape: WorldShape) -> tuple[str, ...]:
    return shape.broker_names


def _processes(shape: WorldShape) -> tuple[str, ...]:
    return shape.process_names


def _but_name_server(shape: WorldShape) -> tuple[str, ...]:
    return (*shape.broker_names, *shape.service_names, *shape.worker_names)


def _but_name_server_and_workers(shape: WorldShape) -> tuple[str, ...]:
    return (*shape.broker_names, *shape.service_names)


def _in_the_network(shape: WorldShape) -> tuple[str, ...]:
    return (NAME_SERVER, *_but_name_server_and_workers(shape))


def _with_power(shape: WorldShape) -> tuple[str, ...]:
    return (*(_SYNCING_MACHINES * shape.broker_names), *shape.service_names, *shape.worker_names)


def _with_database(shape: WorldShape) -> tuple[str, ...]:
    return (*shape.service_names, *shape.worker_names)


def _order_services(shape: WorldShape) -> tuple[str, ...]:
    return shape.order_service_names


def _links(shape: WorldShape) -> tuple[str, ...]:
    pairs = _BUSY_LINKS * [(client, server) for client in shape.service_names for server in shape.broker_names]
    pairs += [(client, NAME_SERVER) for client in (*shape.service_names, *shape.broker_names)]
    return tuple(f"{one}>{other}" for pair in pairs for one, other in (pair, pair[::-1]))


def _databases(shape: WorldShape) -> tuple[str, ...]:
    return shape.database_names


def _redis(shape: WorldShape) -> tuple[str, ...]:
    return (REDIS,)


def _workers(shape: WorldShape) -> tuple[str, ...]:
    return shape.worker_names


@dataclass(frozen=True, slots=True)
class FaultRow:
    """A kind of fault in the table."""

    targets: Targets
    share: float = 1.0
    """The weight of the kind relative to other kinds."""
    for_s: Draw | None = None
    """A function that draws the duration in seconds. None for a fault without duration."""
    parameters: Mapping[str, Draw] = field(default_factory=dict)


_DOWN: Final = between(0.1, 40)
_NTH_TASK: Final = {"nth": whole(1, 3)}

FAULTS: Final[Mapping[FaultKind, FaultRow]] = {
    FaultKind.PROCESS_KILL: FaultRow(_processes, 2.0, _DOWN),
    FaultKind.PROCESS_KILL_AT_DISK: FaultRow(_brokers, 2.5, _DOWN, {"nth": whole(1, 60)}),
    FaultKind.PROCESS_KILL_AT_DATABASE: FaultRow(
        _with_database, 2.0, _DOWN, {"nth": whole(1, 30), "when": one_of("before", "after")}
    ),
    FaultKind.PROCESS_KILL_AT_FRAME: FaultRow(
        _but_name_server_and_workers, 1.5, _DOWN, {"nth": whole(1, 60), "when": one_of("before", "after")}
    ),
    FaultKind.PROCESS_FREEZE: FaultRow(_processes, 1.6, between(0.05, 90)),
    FaultKind.MACHINE_POWER: FaultRow(_with_power, 2.5, _DOWN),
    FaultKind.NETWORK_CUT: FaultRow(_links, 1.5),
    FaultKind.NETWORK_CUT_HALF_WAY: FaultRow(_links, 1.5, None, {"nth": whole(1, 40)}),
    FaultKind.NETWORK_BLOCK: FaultRow(_links, 2.0, between(0.5, 60)),
    FaultKind.NETWORK_PARTITION: FaultRow(_links, 2.5, between(0.5, 60)),
    FaultKind.NETWORK_ISOLATE: FaultRow(_in_the_network, 1.7, between(0.5, 60)),
    FaultKind.NETWORK_LOSE_FRAMES: FaultRow(_links, 1.5, None, {"count": whole(1, 8)}),
    FaultKind.NETWORK_SLOW: FaultRow(_links, 1.5, between(1, 60), {"delay_s": between(0.02, 8)}),
    FaultKind.NETWORK_IN_PIECES: FaultRow(_links, 2.3, between(0.5, 20)),
    FaultKind.CLOCK_LEAP: FaultRow(_but_name_server, 2.2, between(1, 100), {"by_s": either_sign(between(0.5, 7200))}),
    FaultKind.CLOCK_STOP: FaultRow(_but_name_server, 2.0, between(1, 60)),
    FaultKind.CLOCK_RATE: FaultRow(_but_name_server, 1.8, between(5, 100), {"rate": between(0.2, 20)}),
    FaultKind.DISK_FULL: FaultRow(_brokers, 2.0, between(1, 60)),
    FaultKind.DISK_SLOW: FaultRow(_brokers, 2.5, between(1, 60), {"delay_s": between(0.02, 20)}),
    FaultKind.DISK_FAIL_WRITES: FaultRow(_brokers, 2.0, None, {"count": whole(1, 4)}),
    FaultKind.DISK_FAIL_SYNCS: FaultRow(_brokers, 1.5, None, {"count": whole(1, 3)}),
    FaultKind.DATABASE_REFUSE: FaultRow(_databases, 2.0, between(0.5, 120), {"rate": one_of(0.1, 0.5, 1.0)}),
    FaultKind.DATABASE_HANG: FaultRow(_databases, 2.0, between(0.5, 120)),
    FaultKind.DATABASE_LOST_ANSWER: FaultRow(_databases, 2.0, None, {"nth": whole(1, 8)}),
    FaultKind.DATABASE_LOCKED: FaultRow(_databases, 2.5, between(0.5, 120)),
    FaultKind.DATABASE_RULE: FaultRow(_databases, 2.5, between(5, 120), {"nth": whole(1, 6), "about": one_of("rows", "amounts")}),
    FaultKind.REDIS_HANG: FaultRow(_redis, 2.0, between(0.5, 120)),
    FaultKind.REDIS_AWAY: FaultRow(_redis, 2.0, between(0.5, 120)),
    FaultKind.REDIS_LOSE_TASK: FaultRow(_redis, 1.9, None, _NTH_TASK),
    FaultKind.REDIS_DOUBLE_TASK: FaultRow(_redis, 2.0, None, {**_NTH_TASK, "delay_s": between(0.001, 5)}),
    FaultKind.REDIS_LATE_TASK: FaultRow(_redis, 2.0, None, {**_NTH_TASK, "delay_s": between(0.5, 90)}),
    FaultKind.WORKER_KILL_CHILD: FaultRow(_workers, 3.0, None, {"nth": whole(1, 30), "when": one_of("before", "after")}),
    FaultKind.WORKER_FAIL_ORDER: FaultRow(
        _redis,
        4.0,
        between(2, 120),
        {"nth": whole(1, 6), "when": one_of("before", "after"), "how": one_of("raises", "raises", "dies", "hangs")},
    ),
    FaultKind.REPLICA_OLD_ROWS: FaultRow(_order_services, 3.3, between(5, 90), {"age_s": between(1, 30)}),
    FaultKind.MEMBER_OLD: FaultRow(_order_services, 1.5, between(0.5, 60)),
    FaultKind.OUTAGE: FaultRow(_but_name_server, 0.0, between(1200, 3600)),
}
"""The table of faults.

Outages have no weight, because an outage takes much of the simulated time. `plans` adds an outage to a few simulations instead.
An outage lasts twenty minutes or more, which exceeds every check-back, wait and timeout, except the longest redelivery of two
hours.
"""
