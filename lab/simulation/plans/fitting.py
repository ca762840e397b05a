"""Checks that the target of each fault in a plan exists with the plan's settings."""

from __future__ import annotations

from lab.simulation.action_kinds import ActionKind
from lab.simulation.fault_kinds import FaultKind
from lab.simulation.plans.fault_table import FAULTS
from lab.simulation.shapes import WorldShape
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent, UnreadablePlan


def shape_for(plan: Plan) -> WorldShape:
    """Returns the settings of the simulation that a plan describes.

    Raises UnreadablePlan for unknown settings, for an event of an unknown kind, and for a fault whose target does not exist.
    """
    shape = WorldShape.of(plan.shape)
    for event in plan.events:
        if event.what not in tuple(ActionKind):
            _require_target(event, shape)
    return shape


def _require_target(fault: PlannedEvent, shape: WorldShape) -> None:
    try:
        targets = _targets(FaultKind(fault.what), shape)
    except ValueError:
        raise UnreadablePlan(f"unknown event {fault.what} at {fault.at_s:g} s: it is neither an action nor a fault") from None
    if fault.where not in targets:
        possible = ", ".join(dict.fromkeys(targets)) or "nothing"
        raise UnreadablePlan(f"{fault.what} at {fault.at_s:g} s cannot hit {fault.where}; possible targets: {possible}")


def _targets(kind: FaultKind, shape: WorldShape) -> tuple[str, ...]:
    """Returns the possible targets of a kind of fault, including those that the search does not use."""
    drawn = FAULTS[kind].targets(shape)
    return shape.process_names if drawn and set(drawn) <= set(shape.process_names) else drawn
