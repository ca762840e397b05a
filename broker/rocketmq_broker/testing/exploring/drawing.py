"""Generates the plan of a simulated run from a seed: the times of the requests, and the faults."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from rocketmq_broker.testing.exploring.fault_rows import FAULTS
from rocketmq_broker.testing.simulation.chance import stream
from rocketmq_broker.testing.simulation.fault_rows import Parts, drawn, drawn_faults, possible
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent, UnreadablePlan
from rocketmq_broker.world import Chance

REQUEST: Final = "request"
"""The kind of the event in which a customer sends request number `number`."""
CUSTOMER: Final = "customer"

_FIRST_REQUEST_S: Final = 2.0
_LAST_REQUEST_S: Final = 12.0
_LATEST_FAULT_S: Final = 16.0
_WITHOUT_FAULTS: Final = 0.05
_COUNTS: Final = ((1, 3), (3, 6), (6, 12))
_NEAR_A_REQUEST: Final = 0.75
_SOON_S: Final = (0.001, 1.0)
"""The range of seconds between a request and a fault near it. A request takes a few hundredths of a second."""
_RESTS_S: Final = 1.0


def plan_of(seed: int, parts: Parts, requests: int) -> Plan:
    """Returns the plan of a seed for a world with these parts.

    The same arguments always produce the same plan, in every Python interpreter.
    """
    chance = stream(seed, "plan")
    is_crowded = chance.random() < 0.3
    last_s = _FIRST_REQUEST_S + 1.0 if is_crowded else _LAST_REQUEST_S
    times = sorted(round(chance.uniform(_FIRST_REQUEST_S, last_s), 3) for _ in range(requests))
    asked = [PlannedEvent(at_s, REQUEST, CUSTOMER, parameters={"number": number}) for number, at_s in enumerate(times, 1)]
    count = 0 if chance.random() < _WITHOUT_FAULTS else chance.randint(*chance.choice(_COUNTS))

    def begin(chance: Chance, targets: Sequence[str], earlier: Sequence[PlannedEvent]) -> tuple[float, Sequence[str]]:
        is_near = bool(times) and chance.random() < _NEAR_A_REQUEST
        return chance.choice(times) + drawn(_SOON_S, chance) if is_near else chance.uniform(0, _LATEST_FAULT_S), targets

    faults = drawn_faults(seed, count, possible(FAULTS, parts), parts, begin)
    ends_s = max([_LATEST_FAULT_S, *(event.ends_s + _RESTS_S for event in faults)])
    return Plan(seed, {}, (), round(ends_s, 3)).with_events([*asked, *faults])


def check_plan(plan: Plan, parts: Parts, kinds: Iterable[str]) -> None:
    """Checks the plan's events. Raises UnreadablePlan if an event has an unknown kind or target."""
    known = {end for names in parts.values() for name in names for end in name.split(">")}
    for event in plan.events:
        if event.what == REQUEST:
            event.whole("number")
            continue
        if event.what not in kinds:
            raise UnreadablePlan(f"unknown kind of event: {event.what}")
        if unknown := set(event.where.split(">")) - known:
            targets = " or ".join(sorted(known))
            raise UnreadablePlan(f"{event.what} at {event.at_s:g} s has an unknown target {unknown.pop()}: must be {targets}")


def one_line(plan: Plan) -> str:
    """Returns the plan as one line of JSON for `@explore(plan=...)`, without default values."""
    events = [_short(event) for event in plan.events]
    return msgspec.json.encode({"seed": plan.seed, "ends_s": plan.ends_s, "shape": plan.shape, "events": events}).decode()


def _short(event: PlannedEvent) -> Mapping[str, object]:
    return {name: value for name, value in event.as_json().items() if name in ("at_s", "what", "where") or value}
