"""A RocketMQ for tests: broker and name server in the test's process, with a clock that the test moves.

The pytest plugin has the fixture `rocketmq`; without pytest write `async with RocketMQ() as rocketmq:` or `with SyncRocketMQ()
...`.
"""

from rocketmq_broker.testing.rocketmq import RocketMQ
from rocketmq_broker.testing.sync import SyncClient, SyncRocketMQ
from rocketmq_broker.testing.transactions import Transaction
from rocketmq_broker.testing.virtual_time import NothingHappens, VirtualTime

__all__ = ["NothingHappens", "RocketMQ", "SyncClient", "SyncRocketMQ", "Transaction", "VirtualTime"]
