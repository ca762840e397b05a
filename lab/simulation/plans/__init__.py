"""Creates the plan of a simulation from its seed."""

from lab.simulation.plans.drawing import plan_of

__all__ = ["plan_of"]
