"""Calls the credit service within the transaction of the order, without a message."""

from tutorials.race.credits import Credits
from tutorials.race.order import Order
from tutorials.race.way import Way


class CallInLine(Way):
    """Calls the credit service before the order's database commit. A failed call fails the order.

    The credit has no order if the process dies after the call, if the database refuses the commit, or if the response is lost. No
    order can be placed while the credit service is down.
    """

    name = "call-in-line"
    title = "call inside the database transaction"

    async def start(self) -> None:
        """Does nothing, because this approach needs no client of the broker."""

    async def place(self, order: Order) -> None:
        """Stores the order, and has the credit service write the credit before the database commit."""
        async with self.database.writing(order) as writing:
            writing.store(order)
            await self.process.calls.call(self.process.environment.credit_service, order.message().body.decode())

    @classmethod
    async def consume(cls, credits: Credits) -> None:
        """Serves the calls of the order process. The credit process consumes no messages."""

        async def credit(body: str) -> str:
            await credits.credit(body)
            return "credited"

        await credits.calls.serve(credits.environment.credit_service, credit)
