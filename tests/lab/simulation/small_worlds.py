"""Simulated worlds that finish immediately, for tests of the search. The plan determines their behavior."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass, field

from lab.simulation.plans.fault_table import FAULTS
from rocketmq_broker.testing.simulation.history import RecordedEvent
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent

KINDS = list(FAULTS)


@dataclass
class SmallViolation:
    promise: str
    text: str
    keys: tuple[str, ...] = ()


@dataclass
class SmallWorld:
    digest: str
    violations: list[SmallViolation] = field(default_factory=list)
    fired: Counter[str] = field(default_factory=Counter)
    happenings: list[RecordedEvent] = field(default_factory=list)
    simulated_s: float = 100.0


def plan_of(seed: int) -> Plan:
    """Returns a plan of ten orders and two faults, whose kinds depend on the seed."""
    faults = [PlannedEvent(50.0 + number, KINDS[(seed + number) % len(KINDS)], "broker-a", 10.0) for number in range(2)]
    orders = [PlannedEvent(5.0 * number, "order.place", "ana", parameters={"order": number}) for number in range(10)]
    return Plan(seed, {"brokers": 2}, (), 100.0).with_events([*orders, *faults])


def play(plan: Plan) -> SmallWorld:
    """Plays a world that keeps every promise."""
    happenings = [RecordedEvent(int(event.at_s * 1e9), event.where, _kind(event), event.described()) for event in plan.events]
    fired = Counter(event.what for event in plan.events if event.what in KINDS)
    return SmallWorld(f"digest of {plan.seed}", fired=fired, happenings=happenings)


def play_losing_order_3(plan: Plan) -> SmallWorld:
    """Plays a world. Seed 37 loses order 3 if the plan still contains its first fault."""
    world = play(plan)
    orders = {event.parameters["order"] for event in plan.events if event.what == "order.place"}
    if plan.seed == 37 and 3 in orders and KINDS[37 % len(KINDS)] in world.fired:
        world.violations.append(SmallViolation("No order is lost.", "order 3 is lost", ("3",)))
    return world


def play_losing_order_3_or_its_customer(plan: Plan) -> SmallWorld:
    """Plays a world as `play_losing_order_3` does. With one broker instead of two, seed 37 breaks the promise in another way."""
    world = play_losing_order_3(plan)
    if plan.seed == 37 and plan.shape["brokers"] == 1:
        world.violations = [SmallViolation("No order is lost.", "its customer is lost")]
    orders = sum(event.what == "order.place" for event in plan.events)
    for violation in world.violations:
        violation.text = violation.text.replace("3 is lost", f"3 of {orders} is lost at 0x7f3a")
    return world


def play_with_two_errors(plan: Plan) -> SmallWorld:
    """Plays a world. Every twentieth seed breaks the same promise, and seed 40 breaks it for another reason."""
    world = play(plan)
    if plan.seed % 20 == 0:
        error = "KeyError: 'worker-1'" if plan.seed == 40 else f"InvalidStateError in line {plan.seed}"
        world.violations.append(SmallViolation("No error is left to nobody.", error))
    return world


def play_losing_every_fiftieth(plan: Plan) -> SmallWorld:
    """Plays a world. Every fiftieth seed breaks one of two promises."""
    world = play(plan)
    if plan.seed % 50 == 0:
        world.violations.append(SmallViolation(f"Promise {plan.seed % 100}.", "it is broken"))
    return world


def play_without_freezes(plan: Plan) -> SmallWorld:
    """Plays a world in which one kind of fault never fires."""
    world = play(plan)
    del world.fired["process.freeze"]
    return world


def play_hanging_or_dying(plan: Plan) -> SmallWorld:
    """Plays a world. Seed 2 hangs, seed 3 kills its process, and seed 4 raises an error."""
    if plan.seed == 2:
        time.sleep(600)
    if plan.seed == 3:
        os._exit(7)
    if plan.seed == 4:
        raise KeyError("customers")
    return play(plan)


def play_by_the_hash_of_a_text(plan: Plan) -> SmallWorld:
    """Plays a world. Seed 5 behaves differently in each interpreter."""
    world = play(plan)
    if plan.seed == 5:
        world.digest = str(hash("order-5"))
    return world


def play_slowly(plan: Plan) -> SmallWorld:
    """Plays a world slowly enough for a person to press Ctrl-C."""
    time.sleep(0.2)
    return play(plan)


def _kind(event: PlannedEvent) -> str:
    return "fault" if event.what in KINDS else "action"
