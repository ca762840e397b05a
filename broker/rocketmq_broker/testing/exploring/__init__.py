"""Explores a program's own listeners and consumers: a test is played in many simulated worlds, each with other faults.

    @explore(seeds=200)
    def test_each_order_is_credited_once(world): ...

Needs the extra `simulation`: pip install 'rocketmq-broker[simulation]'.
"""

from rocketmq_broker.testing.exploring.errors import NeverSettled, ProgramFailed, RuleBroken, UnusableTest, WorldFailed
from rocketmq_broker.testing.exploring.explore import Exploration, explore
from rocketmq_broker.testing.exploring.world import ExploredWorld

__all__ = [
    "Exploration",
    "ExploredWorld",
    "NeverSettled",
    "ProgramFailed",
    "RuleBroken",
    "UnusableTest",
    "WorldFailed",
    "explore",
]
