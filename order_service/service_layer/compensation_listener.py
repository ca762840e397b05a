"""Cancels orders that another service cannot fulfil. This is the compensation step of the saga.

A compensating message is acknowledged once the order is known to be cancelled or expired. Until then the listener keeps the
message and tries the cancellation again. If the outcome of an attempt is unknown, either the next attempt finds the order
cancelled, or a check-back rolls the cancellation back. If the database does not have the order, the database may be an old
copy. The message is then redelivered, and becomes a dead letter after the last redelivery.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from order_messages import credit_refused
from order_messages.body import UnreadableBody
from order_messages.credit_refused import CreditRefused
from order_messages.stock_short import StockShort
from order_service.domain.order import MAX_REASON_LENGTH
from order_service.service_layer.attempt import TransactionFailed
from order_service.service_layer.cancelling import OrderCancelling
from order_service.service_layer.paying import ImpossibleNow, UnknownOrder
from rocketmq_broker.client import ConsumeContext, ConsumeStatus
from rocketmq_broker.message import MessageExt
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.failing.trying_again import try_until_done
from service_runtime.observing.context import logging_about_message, span_about

DEAD_LETTERS_AT_ONCE: Final = -1
"""The delay level that moves a message to the dead-letter topic without retries."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompensationListener:
    """Cancels orders that cannot be shipped or credited. Retries until an outage ends."""

    cancelling: OrderCancelling
    hold: Callable[[ConsumeContext, float], None] = ConsumeContext.hold

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        """Consumes messages on a thread of the push consumer. Raises MessagesWithdrawn if their queue was reassigned."""
        for message in messages:
            try:
                with logging_about_message(message), span_about([message], "compensate"):
                    try_until_done(partial(self._is_cancelled, *_order_and_reason(message)), partial(self.hold, context))
            except UnreadableBody as error:
                logger.error("message %s is moved to the dead-letter topic: its body is invalid: %s", message.message_id, error)
                context.reconsume_later(message, DEAD_LETTERS_AT_ONCE)
            except UnknownOrder as error:
                # The sender had received the order's message, so the order exists, perhaps in another database.
                logger.error(
                    "message %s will be redelivered: the order database may be an old copy: %s", message.message_id, error
                )
                context.reconsume_later(message)
        return ConsumeStatus.CONSUME_SUCCESS

    def _is_cancelled(self, order_id: str, reason: str) -> bool:
        """Tries to cancel the order. Returns True if the order is known to be cancelled or expired."""
        try:
            cancelled = self.cancelling.cancel(order_id, reason)
        except ImpossibleNow as error:
            logger.warning("order %s does not need to be cancelled (%s): %s", order_id, reason, error)
            return True
        except (TransactionFailed, DatabaseFailure) as error:
            logger.warning("order %s cannot be cancelled yet (%s): %s", order_id, reason, error)
            return False
        if cancelled.is_known:
            logger.info("order %s is cancelled: %s", order_id, reason)
        return cancelled.is_known


def _order_and_reason(message: MessageExt) -> tuple[str, str]:
    """Returns the id of the order to cancel, and the reason. Raises UnreadableBody."""
    if message.topic == credit_refused.TOPIC:
        refused = CreditRefused.read(message.body)
        return refused.order_id, f"not credited: {refused.reason}"[:MAX_REASON_LENGTH]
    short = StockShort.read(message.body)
    return short.order_id, f"out of stock: {short.missing}"[:MAX_REASON_LENGTH]
