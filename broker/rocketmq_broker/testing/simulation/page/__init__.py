"""One simulated world as one HTML page: which promise broke, after which faults, and the order's way between the processes."""

from rocketmq_broker.testing.simulation.page.from_history import told_happenings
from rocketmq_broker.testing.simulation.page.page import page_of
from rocketmq_broker.testing.simulation.page.picture import picture_of
from rocketmq_broker.testing.simulation.page.told import BrokenPromise, ToldHappening, ToldKind, ToldWorld

__all__ = ["BrokenPromise", "ToldHappening", "ToldKind", "ToldWorld", "page_of", "picture_of", "told_happenings"]
