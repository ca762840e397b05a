"""The consumer's message listener: from a batch of orders to its acknowledgement."""

import logging
from collections.abc import Sequence
from typing import Final, Protocol

from broker.client import ConsumeContext, ConsumeStatus
from broker.message import MessageExt
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.domain.order_created import UnreadableOrder, read_order

DEAD_LETTERS_AT_ONCE: Final = -1
"""The delay level that skips the retries."""

logger = logging.getLogger(__name__)


class CreditingUnavailable(Exception):
    """Whether the credits were written is not known: they must come again."""


class Crediting(Protocol):
    """The port to whoever writes credits."""

    def credit(self, credits: Sequence[Credit]) -> list[CreditOutcome]:
        """One outcome for each credit, durable on return. Raises CreditingUnavailable."""


class OrderListener:
    """Acknowledges a message only after its credit is committed.

    A message that is no order comes again, and in the end goes to the dead letters, without holding up the others of its
    batch. One that contradicts the ledger goes there at once: no redelivery will make it right.
    """

    def __init__(self, crediting: Crediting) -> None:
        """`crediting` writes the credits."""
        self._crediting = crediting

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        """Called by the push consumer in one of its threads."""
        readable = self._readable(messages, context)
        try:
            outcomes = self._crediting.credit([credit for _, credit in readable]) if readable else []
        except CreditingUnavailable as error:
            logger.warning("%d messages will come again: %s", len(messages), error)
            return ConsumeStatus.RECONSUME_LATER
        for (message, credit), outcome in zip(readable, outcomes, strict=True):
            if outcome in (CreditOutcome.CONFLICTING, CreditOutcome.IMPOSSIBLE):
                self._park(message, credit, outcome, context)
        return ConsumeStatus.CONSUME_SUCCESS

    def _readable(self, messages: list[MessageExt], context: ConsumeContext) -> list[tuple[MessageExt, Credit]]:
        readable = []
        for message in messages:
            try:
                readable.append((message, _credit(message)))
            except UnreadableOrder as error:
                logger.error("message %s is no order (redelivery %d): %s", message.message_id, message.reconsume_times, error)
                context.reconsume_later(message)
        return readable

    def _park(self, message: MessageExt, credit: Credit, outcome: CreditOutcome, context: ConsumeContext) -> None:
        logger.error(
            "message %s goes to the dead letters, %s: order %s of customer %s over %d cents contradicts the ledger",
            message.message_id, outcome.value, credit.order_id, credit.customer, credit.amount_cents,
        )  # fmt: skip
        context.reconsume_later(message, DEAD_LETTERS_AT_ONCE)


def _credit(message: MessageExt) -> Credit:
    order = read_order(message.body)
    return Credit(
        order_id=order.order_id,
        customer=order.customer,
        amount_cents=order.total_cents,
        message_id=message.message_id,
        transaction_id=message.transaction_id,
    )
