"""Plays message.py: a broker in memory and the credit service here, and the order service in a process of its own."""

import asyncio
import sys
import threading
from pathlib import Path

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, Message, MessageExt, TransactionProducer
from rocketmq_broker.stop_signals import until_interrupted
from rocketmq_broker.testing import RocketMQ
from tutorials.halfway.message import OrderService, give_credit
from tutorials.halfway.services import show


async def serve_orders(folder: Path, namesrv_addr: str, order_id: str | None) -> None:
    """Runs the order service until the standard input ends. With an order, places it and is killed halfway."""
    listener = OrderService(folder, is_killed=order_id is not None)
    async with TransactionProducer("orders", listener, namesrv_addr=namesrv_addr) as producer:
        if order_id is not None:
            await producer.send_message_in_transaction(Message.of("orders", order_id, keys=[order_id]))
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def play(folder: Path, order_id: str) -> None:
    """Starts the order service, which is killed, and starts it again. The broker asks it back."""

    def listener(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            give_credit(folder, message)
        is_given.set()
        return ConsumeStatus.CONSUME_SUCCESS

    is_given = threading.Event()
    async with RocketMQ() as rocketmq:
        await rocketmq.consumer("credits", "orders", listener)
        command = (sys.executable, "-m", __spec__.name, str(folder), "serve", rocketmq.namesrv_addr)
        killed = await asyncio.create_subprocess_exec(*command, order_id, stdin=asyncio.subprocess.PIPE)
        await killed.wait()
        await _show(rocketmq, folder, order_id)
        restarted = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
        assert restarted.stdout is not None
        await restarted.stdout.readline()
        while not is_given.is_set():
            await rocketmq.advance(minutes=1)  # the broker checks back
            await asyncio.sleep(0.1)  # the other process answers in real time
        await _show(rocketmq, folder, order_id)
        await restarted.communicate(b"")


async def _show(rocketmq: RocketMQ, folder: Path, order_id: str) -> None:
    print(f"half messages: {len(await rocketmq.pending(order_id))}, ", end="")
    show(folder, order_id, "orders", "credits")


if __name__ == "__main__":
    with until_interrupted():
        match Path(sys.argv[1]), sys.argv[2:]:
            case folder, ["play", order_id]:
                asyncio.run(play(folder, order_id))
            case folder, ["serve", namesrv_addr, *order]:
                asyncio.run(serve_orders(folder, namesrv_addr, order[0] if order else None))
