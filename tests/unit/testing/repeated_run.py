"""Runs everything that could differ between two runs, and prints the results as a hash and as text.

Run it as a program, so that even the order of Python's sets differs between runs.
"""

import asyncio
import hashlib
import sys

from rocketmq_broker.testing.rocketmq import RocketMQ
from tests.unit.testing.listeners import UNKNOWN, Consumption, Transactions, order


async def main(seed: int) -> None:
    async with RocketMQ({"transactionCheckMax": 3}, seed=seed) as rocketmq:
        settled, hanging = Transactions(), Transactions(UNKNOWN, UNKNOWN)
        first = await rocketmq.transaction_producer("first", settled)
        second = await rocketmq.transaction_producer("second", hanging)
        await first.create_topic("orders")
        consumption, other = Consumption(failures=4), Consumption()
        await rocketmq.consumer("credit", "orders", consumption)
        await rocketmq.consumer("invoice", "orders", other)
        rocketmq.lose_next_decision(2)
        await asyncio.gather(*(first.send_message_in_transaction(order(f"order-{number}")) for number in range(10)))
        await asyncio.gather(*(second.send_message_in_transaction(order(f"lost-{number}")) for number in range(3)))
        await first.send(order("late", delay_time_level=3))
        await rocketmq.advance(minutes=2)
        rocketmq.cut_connections()
        await rocketmq.advance(minutes=10)
        await rocketmq.crash()
        await rocketmq.restart()
        await rocketmq.advance(minutes=3)
        ids = [message.message_id for message in consumption.got + other.got]
        print(hashlib.sha256(rocketmq.commit_log()).hexdigest(), len(rocketmq.commit_log()))
        print(hashlib.sha256(" ".join(ids).encode()).hexdigest(), len(ids))
        print(rocketmq.story())
        print(rocketmq.namesrv_addr, rocketmq.broker_addr)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
