"""Runs a test of your own listeners and consumers in many simulated worlds, each with different faults.

    @explore(seeds=200)
    def test_each_order_is_credited_once(world): ...

It needs the extra `simulation`: pip install 'rocketmq-broker[simulation]'.
"""

from rocketmq_broker.testing.exploring.errors import (
    NeverSettled,
    ProgramFailed,
    PromisesBroken,
    RuleBroken,
    UnusableTest,
    WorldFailed,
)
from rocketmq_broker.testing.exploring.explore import explore
from rocketmq_broker.testing.exploring.remote import RemoteCallFailed
from rocketmq_broker.testing.exploring.search.worlds import FoundBroken
from rocketmq_broker.testing.exploring.world import ExploredWorld

__all__ = [
    "ExploredWorld",
    "FoundBroken",
    "NeverSettled",
    "ProgramFailed",
    "PromisesBroken",
    "RemoteCallFailed",
    "RuleBroken",
    "UnusableTest",
    "WorldFailed",
    "explore",
]
