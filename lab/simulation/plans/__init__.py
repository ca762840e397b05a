"""Draws the plan of each seed."""

from lab.simulation.plans.drawing import plan_of

__all__ = ["plan_of"]
