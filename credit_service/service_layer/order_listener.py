"""The message listener, which writes credits for a batch of orders or cancellations and acknowledges the messages."""

import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import Credited, Later
from credit_service.service_layer.refusing import Refusing
from order_messages import order_cancelled
from order_messages.body import UnreadableBody
from order_messages.order_cancelled import OrderCancelled
from order_messages.order_created import OrderCreated
from order_messages.states import EntryKind
from rocketmq_broker.client import ConsumeContext, ConsumeStatus
from rocketmq_broker.message import MessageExt
from service_runtime.observing.log_context import REQUEST_ID, logging_about_message
from service_runtime.observing.tracing import span_about


def entry_of(message: MessageExt) -> Credit:
    """Returns the ledger entry for a message. Raises UnreadableBody."""
    is_cancelled = message.topic == order_cancelled.TOPIC
    body = (OrderCancelled if is_cancelled else OrderCreated).read(message.body)
    return Credit(
        order_id=body.order_id,
        customer=body.customer,
        amount_cents=body.total_cents,
        message_id=message.message_id,
        transaction_id=message.transaction_id,
        kind=EntryKind.REVERSAL if is_cancelled else EntryKind.CREDIT,
        request_id=message.properties.get(REQUEST_ID),
    )


DEAD_LETTERS_AT_ONCE: Final = -1
"""The delay level that sends a message to the dead letters without retries."""
IN_A_MINUTE: Final = 5
"""The delay level for orders that are postponed for a minute; see `service_runtime.failing.holds.ASIDE_S`."""

logger = logging.getLogger(__name__)


class BatchCrediting(Protocol):
    """Credits a batch of orders. Waits until that is possible; see `service_layer.fair_crediting`."""

    def credit(self, credits: Sequence[Credit], context: ConsumeContext) -> list[Credited]:
        """Returns the outcome of each credit. Written entries are durable on return."""


class CreditingListener:
    """Acknowledges a message only after its credit is stored.

    A message becomes a dead letter at once if it is unreadable, if it contradicts the ledger, or if the database refuses it but
    accepts others. An order whose task fails is redelivered later. Neither delays the other orders of the batch.
    """

    def __init__(
        self,
        crediting: BatchCrediting,
        refusing: Refusing | None = None,
        acknowledging: Callable[[Sequence[tuple[str, EntryKind]]], None] = lambda keys: None,
    ) -> None:
        """`crediting` writes the credits. With `refusing`, an order is refused if possible, instead of becoming a dead letter.

        `acknowledging` is called with the keys of the stored entries before their messages are acknowledged.
        """
        self._crediting = crediting
        self._refusing = refusing
        self._acknowledging = acknowledging

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        """Consumes messages on a thread of the push consumer. Raises MessagesWithdrawn if their queue was reassigned."""
        readable = self._readable(messages, context)
        with span_about([message for message, _ in readable], "credit orders"):
            outcomes = self._crediting.credit([credit for _, credit in readable], context) if readable else []
        for (message, credit), outcome in zip(readable, outcomes, strict=True):
            if isinstance(outcome, Later):
                context.give_way(message, IN_A_MINUTE)
            elif outcome not in (CreditOutcome.CREDITED, CreditOutcome.ALREADY_CREDITED):
                self._do_without_credit(message, credit, outcome, context)
        postponed = context.postponed
        self._acknowledging([credit.key for message, credit in readable if message.queue_offset not in postponed])
        return ConsumeStatus.CONSUME_SUCCESS

    def _do_without_credit(
        self, message: MessageExt, credit: Credit, outcome: CreditOutcome | None, context: ConsumeContext
    ) -> None:
        with logging_about_message(message):
            if self._refusing is not None and self._refusing.is_refused(message, credit, outcome, context):
                return
        if outcome is None:
            context.reconsume_later(message)
        else:
            self._park(message, credit, outcome, context)

    def _readable(self, messages: list[MessageExt], context: ConsumeContext) -> list[tuple[MessageExt, Credit]]:
        readable = []
        for message in messages:
            try:
                readable.append((message, entry_of(message)))
            except UnreadableBody as error:
                with logging_about_message(message):
                    logger.error("message %s goes to the dead letters, its body is invalid: %s", message.message_id, error)
                context.reconsume_later(message, DEAD_LETTERS_AT_ONCE)
        return readable

    def _park(self, message: MessageExt, credit: Credit, outcome: CreditOutcome, context: ConsumeContext) -> None:
        with logging_about_message(message):
            logger.error(
                "message %s goes to the dead letters, %s: the %s of order %s of customer %s for %d cents contradicts the ledger",
                message.message_id, outcome.value, credit.kind, credit.order_id, credit.customer, credit.amount_cents,
            )  # fmt: skip
        context.reconsume_later(message, DEAD_LETTERS_AT_ONCE)
