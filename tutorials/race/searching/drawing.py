"""Draws the random plan of a seed: the customers' orders and the faults. All approaches get the same plan."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from rocketmq_broker.testing.simulation.chance import stream
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent

PLACE: Final = "order.place"
DATABASE_REFUSES: Final = "database.refuse"
DATABASE_SLOW: Final = "database.slow"
REDIS_DOWN: Final = "redis.down"
REDIS_EMPTIED: Final = "redis.emptied"

ORDERS: Final = 20
_ACTING_S: Final = 30.0
_MAX_FAULTS: Final = 6
_PROCESSES: Final = ("orders", "credits", "broker-a")
_LINKS: Final = ("orders>broker-a", "broker-a>orders", "credits>broker-a", "broker-a>credits")


def plan_of(seed: int) -> Plan:
    """Returns the plan of a seed. Calls with the same seed return the same plan."""
    chance = stream(seed, "race")
    places = [
        PlannedEvent(_rounded(chance.uniform(1, _ACTING_S)), PLACE, "customer", parameters={"order": number})
        for number in range(ORDERS)
    ]
    faults = list(_faults(chance, chance.randint(1, _MAX_FAULTS)))
    ends_s = max([_ACTING_S, *(fault.ends_s for fault in faults)])
    return Plan(seed, {}, (), ends_s).with_events([*places, *faults])


def _faults(chance: Random, count: int) -> Iterator[PlannedEvent]:
    for _ in range(count):
        at_s = _rounded(chance.uniform(1, _ACTING_S))
        what, targets, for_s, parameters = chance.choice(_kinds(chance))
        yield PlannedEvent(at_s, what, chance.choice(targets), for_s, parameters)


def _kinds(chance: Random) -> list[tuple[str, tuple[str, ...], float, dict[str, Any]]]:
    """Returns the possible faults, each with its kind, possible targets, duration in seconds and parameters."""
    down_s, while_s = _rounded(chance.uniform(0.1, 8)), _rounded(chance.uniform(0.5, 15))
    frame = {"nth": chance.randint(1, 20), "when": chance.choice(("before", "after"))}
    return [
        ("process.kill", _PROCESSES, down_s, {}),
        ("process.kill_at_frame", _PROCESSES, down_s, frame),
        ("process.freeze", _PROCESSES, while_s, {}),
        ("network.cut", _LINKS, 0.0, {}),
        ("network.lose_frames", _LINKS, 0.0, {"count": chance.randint(1, 6)}),
        ("network.isolate", _PROCESSES, while_s, {}),
        (DATABASE_REFUSES, ("orders",), _rounded(chance.uniform(0.5, 5)), {}),
        (DATABASE_SLOW, ("orders",), while_s, {"delay_s": _rounded(chance.uniform(1, 12))}),
        (REDIS_DOWN, ("redis",), while_s, {}),
        (REDIS_EMPTIED, ("redis",), 0.0, {}),
    ]


def _rounded(seconds: float) -> float:
    return round(seconds, 3)
