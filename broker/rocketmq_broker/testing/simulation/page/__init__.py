"""Renders a simulated run as an HTML page: the first violated promise, the faults before the violation, and related events."""

from rocketmq_broker.testing.simulation.page.from_history import reported_events
from rocketmq_broker.testing.simulation.page.page import page_of
from rocketmq_broker.testing.simulation.page.picture import picture_of
from rocketmq_broker.testing.simulation.page.world_report import BrokenPromise, ReportedEvent, ReportedKind, WorldReport

__all__ = ["BrokenPromise", "ReportedEvent", "ReportedKind", "WorldReport", "page_of", "picture_of", "reported_events"]
