"""Sends a plain message. The consumer credits the order only after the order service has confirmed it."""

import json
from typing import Final

from tutorials.race.calls import CallFailed
from tutorials.race.credits import Credits
from tutorials.race.ways.plain_sends import SendThenCommit

STORED: Final = "stored"
UNKNOWN: Final = "unknown"


class AskBeforeCredit(SendThenCommit):
    """Sends the message before it stores the order. The consumer calls the order service before it writes the credit.

    If the order is unknown, the consumer receives the message again later: after 10 s, 30 s, 1 min and so on. A message
    usually arrives before the order's commit, so most credits are 10 s late. A message without an order ends in the
    dead-letter topic.

    Each start of the credit process receives the retries since the last saved offset again, and returns the messages
    without an order to the broker once more. If everything restarts every second, the retries double at each restart.
    Therefore the orders, and with them the faults, are 100 times rarer than those of other approaches.
    """

    name = "ask-before-credit"
    title = "send, then commit; consumer asks back"
    order_every_s = (0.0, 20.0)

    async def start(self) -> None:
        """Creates the producer, and serves the calls with which the credit process looks up orders."""
        await super().start()
        await self.process.calls.serve(self.process.environment.order_service, self._answer)

    async def _answer(self, order_id: str) -> str:
        """Returns STORED for an order in the database, else UNKNOWN. The order's transaction may still be running."""
        return STORED if self.database.query("SELECT 1 FROM orders WHERE order_id = ?", (order_id,)) else UNKNOWN

    @classmethod
    async def consume(cls, credits: Credits) -> None:
        """Consumes the topic's messages, and credits only orders that the order service confirms."""

        async def is_stored(body: str) -> bool:
            try:
                return await credits.calls.call(credits.environment.order_service, json.loads(body)["order_id"]) == STORED
            except CallFailed:
                return False

        await credits.consume_topic(is_stored)
