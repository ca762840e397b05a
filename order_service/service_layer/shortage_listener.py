"""Hears of shortages, and cancels the orders that cannot be shipped: the saga's way back.

A shortage is acknowledged once the order is known to be at its end. Until then the message is held, and the cancellation tried
again: one whose outcome nobody knew either was committed, and is found so, or will be rolled back by check-back.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from broker.client import ConsumeContext, ConsumeStatus
from broker.message import MessageExt
from order_messages.body import UnreadableMessage
from order_messages.stock_short import StockShort
from order_service.domain.order import MAX_REASON_LENGTH
from order_service.service_layer.cancelling import OrderCancelling
from order_service.service_layer.paying import ImpossibleNow, UnknownOrder
from order_service.service_layer.sending import TransactionFailed
from service_runtime.database_errors import DatabaseFailure
from service_runtime.log_context import logging_about_message
from service_runtime.tracing import span_about
from service_runtime.trying_again import try_until_done

DEAD_LETTERS_AT_ONCE: Final = -1
"""The delay level that skips the retries: no redelivery mends such a message."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShortageListener:
    """Cancels each order that is short. An outage holds the message, however long it lasts."""

    cancelling: OrderCancelling
    hold: Callable[[ConsumeContext, float], None] = ConsumeContext.hold

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        """Called by the push consumer in one of its threads. Raises MessagesWithdrawn if they are no longer this consumer's."""
        for message in messages:
            try:
                with logging_about_message(message), span_about([message], "cancel for want of stock"):
                    self._cancel(StockShort.read(message.body), context)
            except (UnreadableMessage, UnknownOrder) as error:
                logger.error("message %s goes to the dead letters, it tells of no order: %s", message.message_id, error)
                context.reconsume_later(message, DEAD_LETTERS_AT_ONCE)
        return ConsumeStatus.CONSUME_SUCCESS

    def _cancel(self, short: StockShort, context: ConsumeContext) -> None:
        try_until_done(lambda: self._is_cancelled(short), lambda seconds: self.hold(context, seconds))

    def _is_cancelled(self, short: StockShort) -> bool:
        """Whether the order is known to be cancelled, or at another end."""
        reason = f"out of stock: {short.missing}"[:MAX_REASON_LENGTH]
        try:
            cancelled = self.cancelling.cancel(short.order_id, reason)
        except ImpossibleNow as error:
            logger.warning("order %s is short, and need not be cancelled: %s", short.order_id, error)
            return True
        except (TransactionFailed, DatabaseFailure) as error:
            logger.warning("order %s is short, and cannot be cancelled yet: %s", short.order_id, error)
            return False
        if cancelled.is_known:
            logger.info("order %s is cancelled: %s", short.order_id, reason)
        return cancelled.is_known
