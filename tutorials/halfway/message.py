"""A transactional message. The order service stores the order, and the broker stores everything else.

The order service responds to check-backs according to the stored orders.
"""

import asyncio
import sys
import threading
from pathlib import Path

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, LocalTransactionState, Message, MessageExt, TransactionProducer
from rocketmq_broker.stop_signals import until_interrupted
from rocketmq_broker.testing import RocketMQ
from tutorials.halfway.services import call, die, show, state_of

PLACE = "INSERT OR IGNORE INTO orders VALUES (?, 'PLACED')"
CREDIT = "INSERT OR IGNORE INTO credits VALUES (?, 'GIVEN')"


class OrderService:
    """The order service's transaction listener, which stores orders."""

    def __init__(self, folder: Path, *, is_killed: bool = False) -> None:
        self.folder, self.is_killed = folder, is_killed

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Stores the order."""
        call(self.folder, "orders", (PLACE, message.keys))
        if self.is_killed:
            die()
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns COMMIT if the order is stored."""
        is_placed = state_of(self.folder, "orders", message.keys[0]) == "PLACED"
        return LocalTransactionState.COMMIT_MESSAGE if is_placed else LocalTransactionState.UNKNOWN


async def run_order_service(folder: Path, namesrv_addr: str, order_id: str | None, *, is_killed: bool = False) -> None:
    """Places the order, if any, and responds to check-backs until the standard input ends."""
    listener = OrderService(folder, is_killed=is_killed)
    async with TransactionProducer("orders", listener, namesrv_addr=namesrv_addr) as producer:
        if order_id is not None:
            await producer.send_message_in_transaction(Message.of("orders", order_id, keys=[order_id]))
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def play(folder: Path, order_id: str) -> None:
    """Runs the broker and the credit service, and starts the order service twice.

    The first order service kills itself halfway. The second one responds to the check-back.
    """

    def give_credit(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            call(folder, "credits", (CREDIT, message.keys))
        is_given.set()
        return ConsumeStatus.CONSUME_SUCCESS

    is_given = threading.Event()
    async with RocketMQ() as rocketmq:
        await rocketmq.consumer("credits", "orders", give_credit)
        command = (sys.executable, "-m", __spec__.name, str(folder), rocketmq.namesrv_addr)
        killed = await asyncio.create_subprocess_exec(*command, order_id, "kill", stdin=asyncio.subprocess.PIPE)
        await killed.wait()
        print(f"half messages: {len(await rocketmq.pending(order_id))}, ", end="")
        show(folder, order_id, "orders", "credits")
        restarted = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
        assert restarted.stdout is not None
        await restarted.stdout.readline()
        while not is_given.is_set():
            await rocketmq.advance(minutes=1)  # the broker checks back
            await asyncio.sleep(0.1)  # the other process answers in real time
        print(f"half messages: {len(await rocketmq.pending(order_id))}, ", end="")
        show(folder, order_id, "orders", "credits")
        await restarted.communicate(b"")


if __name__ == "__main__":
    with until_interrupted():
        match Path(sys.argv[1]), sys.argv[2:]:
            case folder, ["play", order_id]:
                asyncio.run(play(folder, order_id))
            case folder, [namesrv_addr]:
                asyncio.run(run_order_service(folder, namesrv_addr, None))
            case folder, [namesrv_addr, order_id, "kill"]:
                asyncio.run(run_order_service(folder, namesrv_addr, order_id, is_killed=True))
