"""Simulated worlds that finish immediately, for tests of the search. The plan determines their behavior."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from lab.simulation.plans.fault_table import FAULTS
from rocketmq_broker.testing.exploring.search.worlds import FoundBroken, WorldEnd, WorldKind, Worlds
from rocketmq_broker.testing.simulation.history import RecordedEvent
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent

KINDS = list(FAULTS)


def plan_of(seed: int) -> Plan:
    """Returns a plan of ten orders and two faults, whose kinds depend on the seed."""
    faults = [PlannedEvent(50.0 + number, KINDS[(seed + number) % len(KINDS)], "broker-a", 10.0) for number in range(2)]
    orders = [PlannedEvent(5.0 * number, "order.place", "ana", parameters={"order": number}) for number in range(10)]
    return Plan(seed, {"brokers": 2}, (), 100.0).with_events([*orders, *faults])


def worlds_of(play: Callable[[Plan], WorldEnd]) -> Worlds:
    """Returns the worlds that `play` plays."""
    kind = WorldKind(draw=plan_of, kinds=FAULTS, simplest={"brokers": 1}, lanes=("customer", "broker", ""))
    return Worlds("The shop", kind, plan_of, partial(_play, play))


def _play(play: Callable[[Plan], WorldEnd], plan: Plan | int, is_recorded: bool) -> WorldEnd:
    return play(plan_of(plan) if isinstance(plan, int) else plan)


def play(plan: Plan) -> WorldEnd:
    """Plays a world that keeps every promise."""
    happenings = [RecordedEvent(int(event.at_s * 1e9), event.where, _kind(event), event.described()) for event in plan.events]
    fired = {kind: sum(event.what == kind for event in plan.events) for kind in KINDS}
    return WorldEnd(plan, f"digest of {plan.seed}", fired, 100.0, (), tuple(happenings))


def breaking(world: WorldEnd, promise: str, text: str, *keys: str) -> WorldEnd:
    """Returns the world with one broken promise."""
    return replace(world, broken=(FoundBroken(promise, text, keys),))


def play_losing_order_3(plan: Plan) -> WorldEnd:
    """Plays a world. Seed 37 loses order 3 if the plan still contains its first fault."""
    world = play(plan)
    orders = {event.parameters["order"] for event in plan.events if event.what == "order.place"}
    if plan.seed == 37 and 3 in orders and world.fired[KINDS[37 % len(KINDS)]]:
        return breaking(world, "No order is lost.", "order 3 is lost", "3")
    return world


def play_losing_order_3_or_its_customer(plan: Plan) -> WorldEnd:
    """Plays a world as `play_losing_order_3` does. With one broker instead of two, seed 37 breaks the promise in another way."""
    world = play_losing_order_3(plan)
    if plan.seed == 37 and plan.shape["brokers"] == 1:
        return breaking(world, "No order is lost.", "its customer is lost")
    orders = sum(event.what == "order.place" for event in plan.events)
    found = f"order 3 of {orders} is lost at 0x7f3a"
    return breaking(world, "No order is lost.", found, "3") if world.broken else world


def play_with_two_errors(plan: Plan) -> WorldEnd:
    """Plays a world. Every twentieth seed breaks the same promise, and seed 40 breaks it for another reason."""
    world = play(plan)
    if plan.seed % 20 == 0:
        error = "KeyError: 'worker-1'" if plan.seed == 40 else f"InvalidStateError in line {plan.seed}"
        return breaking(world, "No error is left to nobody.", error)
    return world


def play_losing_every_fiftieth(plan: Plan) -> WorldEnd:
    """Plays a world. Every fiftieth seed breaks one of two promises."""
    world = play(plan)
    if plan.seed % 50 == 0:
        return breaking(world, f"Promise {plan.seed % 100}.", "it is broken")
    return world


def play_without_freezes(plan: Plan) -> WorldEnd:
    """Plays a world in which one kind of fault never fires."""
    world = play(plan)
    return replace(world, fired={**world.fired, "process.freeze": 0})


def play_hanging_or_dying(plan: Plan) -> WorldEnd:
    """Plays a world. Seed 2 hangs, seed 3 kills its process, and seed 4 raises an error."""
    if plan.seed == 2:
        time.sleep(600)
    if plan.seed == 3:
        os._exit(7)
    if plan.seed == 4:
        raise KeyError("customers")
    return play(plan)


def play_by_the_hash_of_a_text(plan: Plan) -> WorldEnd:
    """Plays a world. Seed 5 behaves differently in each interpreter."""
    world = play(plan)
    if plan.seed == 5:
        return replace(world, digest=str(hash("order-5")))
    return world


def play_slowly(plan: Plan) -> WorldEnd:
    """Plays a world slowly enough for a person to press Ctrl-C."""
    time.sleep(0.2)
    return play(plan)


def _kind(event: PlannedEvent) -> str:
    return "fault" if event.what in KINDS else "action"
