"""RocketMQ for tests. A broker and a name server run in the test's process, with a clock that the test controls.

With pytest, use the plugin's fixture `rocketmq`. Without it, write `async with RocketMQ() as rocketmq:` or
`with SyncRocketMQ() as rocketmq:`.
"""

from rocketmq_broker.testing.rocketmq import RocketMQ
from rocketmq_broker.testing.sync import SyncClient, SyncRocketMQ
from rocketmq_broker.testing.transactions import Transaction
from rocketmq_broker.testing.virtual_time import NothingHappens, VirtualTime

__all__ = ["NothingHappens", "RocketMQ", "SyncClient", "SyncRocketMQ", "Transaction", "VirtualTime"]
