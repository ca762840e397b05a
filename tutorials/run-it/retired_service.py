"""A retired payment service, which sends a half message and never decides it."""

import asyncio
import sys

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt, TransactionProducer


class Payments:
    """A listener that always returns UNKNOWN, because its database no longer exists."""

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN


async def main(key: str) -> None:
    """Sends one payment to the broker that the name servers in NAMESRV_ADDR report."""
    async with TransactionProducer("payment-service", Payments()) as producer:
        sent = await producer.send_message_in_transaction(Message.of("payments", "5000 EUR", keys=[key]))
        print(f"{key}: {sent.local_transaction_state.name}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
