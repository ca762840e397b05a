"""Refuses an order that cannot be credited, so that the order service cancels it: the saga's way back from the ledger.

The ledger is written first, then the refusal is sent, and the order's message is acknowledged last. If the service dies in
between, the message is redelivered, the refusal is found in the ledger, and sent again. So it needs no transactional message.
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
    """The ledger, as refusals need it."""

    def annul(self, credit: Credit) -> bool:
        """Closes the order without a credit; durable on return. Returns whether it is closed. Raises DatabaseFailure."""


class RefusalNotTold(Exception):
    """The broker did not confirm the message, but may have stored it."""


class RefusalTeller(Protocol):
    """Tells the order service that an order cannot be credited."""

    def tell(self, order_id: str, reason: str) -> None:
        """Sends the message; stored on return. Raises RefusalNotTold."""


@dataclass(frozen=True, slots=True)
class Refusing:
    """Refuses orders that would become dead letters. Holds them during an outage of any length."""

    ledger: AnnullingLedger
    teller: RefusalTeller
    max_reconsume_times: int
    """After so many redeliveries an order whose task fails is given up."""
    hold: Callable[[ConsumeContext, float], None] = ConsumeContext.hold

    def is_refused(self, message: MessageExt, credit: Credit, outcome: CreditOutcome | None, context: ConsumeContext) -> bool:
        """Returns whether the order is refused and the order service told. If not, its message is treated like all others.

        `outcome` is the credit's, None after a failed task. Reversals and orders that contradict the ledger are never refused:
        both need a person. Raises MessagesWithdrawn.
        """
        reason = self._reason(message, outcome)
        if reason is None or credit.kind is not EntryKind.CREDIT:
            return False
        answers: list[bool] = []

        def is_done() -> bool:
            try:
                answers.append(self._refuse(credit, reason))
            except (DatabaseFailure, RefusalNotTold) as error:
                logger.warning("order %s cannot be refused yet: %s", credit.order_id, error)
                return False
            return True

        try_until_done(is_done, lambda seconds: self.hold(context, seconds))
        return answers[-1]

    def _reason(self, message: MessageExt, outcome: CreditOutcome | None) -> str | None:
        if outcome is CreditOutcome.REFUSED:
            return "it was refused before"
        if outcome is CreditOutcome.IMPOSSIBLE:
            return "the ledger does not take it"
        if outcome is None and message.reconsume_times >= self.max_reconsume_times:
            return f"its task failed at each of {message.reconsume_times + 1} deliveries"
        return None

    def _refuse(self, credit: Credit, reason: str) -> bool:
        if not self.ledger.annul(credit):
            return False
        self.teller.tell(credit.order_id, reason)
        logger.error("order %s is refused, and will be cancelled: %s", credit.order_id, reason)
        return True
