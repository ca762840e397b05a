"""Checks that the target of each fault in a plan exists with the plan's settings."""

from lab.simulation.action_kinds import ActionKind
from lab.simulation.plans.fault_table import FAULTS, parts_of
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
    if fault.what not in FAULTS:
        raise UnreadablePlan(f"unknown event {fault.what} at {fault.at_s:g} s: it is neither an action nor a fault")
    targets = FAULTS[fault.what].targets(parts_of(shape))
    if targets and set(targets) <= set(shape.process_names):
        targets = [*shape.process_names]  # including those that the search does not use
    if fault.where not in targets:
        possible = ", ".join(dict.fromkeys(targets)) or "nothing"
        raise UnreadablePlan(f"{fault.what} at {fault.at_s:g} s cannot hit {fault.where}; possible targets: {possible}")
