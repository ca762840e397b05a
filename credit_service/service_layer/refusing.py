"""Refuses orders that cannot be credited, so that the order service cancels them. This is the saga's compensation.

The ledger is written first, then the refusal is sent, and the order's message is acknowledged last. If the service dies in
between, the message is redelivered, the refusal is found in the ledger, and it is sent again. So no transactional message is
needed.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from credit_service.domain.credit import Credit, CreditOutcome
from order_messages.states import EntryKind
from rocketmq_broker.client import ConsumeContext
from rocketmq_broker.message import MessageExt
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.failing.trying_again import try_until_done

logger = logging.getLogger(__name__)


class AnnullingLedger(Protocol):
    """The interface of the ledger that refusals use."""

    def annul(self, credit: Credit) -> bool:
        """Closes the order without a credit. Returns True if it is closed, durably. Raises DatabaseFailure."""


class RefusalNotReported(Exception):
    """The broker did not confirm the message, but may have stored it."""


class RefusalReporter(Protocol):
    """Reports to the order service that an order cannot be credited."""

    def report(self, order_id: str, reason: str) -> None:
        """Sends a message that reports the refusal. The broker has stored it on return. Raises RefusalNotReported."""


@dataclass(frozen=True, slots=True)
class Refusing:
    """Refuses orders that would become dead letters. Retries for as long as an outage lasts."""

    ledger: AnnullingLedger
    reporter: RefusalReporter
    max_reconsume_times: int
    """The number of redeliveries after which an order whose task fails is refused."""
    hold: Callable[[ConsumeContext, float], None] = ConsumeContext.hold

    def is_refused(self, message: MessageExt, credit: Credit, outcome: CreditOutcome | None, context: ConsumeContext) -> bool:
        """Returns True if the order is refused and the refusal is sent. The caller acknowledges the message then.

        `outcome` is the outcome of the credit, or None after a failed task. Reversals and orders that contradict the ledger are
        never refused, because a person must resolve them. Raises MessagesWithdrawn.
        """
        reason = self._reason(message, outcome)
        if reason is None or credit.kind is not EntryKind.CREDIT:
            return False
        answers: list[bool] = []

        def is_done() -> bool:
            try:
                answers.append(self._refuse(credit, reason))
            except (DatabaseFailure, RefusalNotReported) as error:
                logger.warning("order %s cannot be refused yet: %s", credit.order_id, error)
                return False
            return True

        try_until_done(is_done, lambda seconds: self.hold(context, seconds))
        return answers[-1]

    def _reason(self, message: MessageExt, outcome: CreditOutcome | None) -> str | None:
        if outcome is CreditOutcome.REFUSED:
            return "it was refused before"
        if outcome is CreditOutcome.IMPOSSIBLE:
            return "the ledger does not accept it"
        if outcome is None and message.reconsume_times >= self.max_reconsume_times:
            return f"its task failed at each of {message.reconsume_times + 1} deliveries"
        return None

    def _refuse(self, credit: Credit, reason: str) -> bool:
        if not self.ledger.annul(credit):
            return False
        self.reporter.report(credit.order_id, reason)
        logger.error("order %s is refused, and will be cancelled: %s", credit.order_id, reason)
        return True
