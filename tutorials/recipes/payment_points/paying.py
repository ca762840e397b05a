"""Two ways to store a payment and send its message: with Django's `on_commit`, and with a transactional message."""

import json
from collections.abc import Callable
from typing import Any

from django.db import transaction

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, LocalTransactionState, Message, MessageExt
from rocketmq_broker.databases.django import barrier, once, settle
from tutorials.recipes.payment_points.models import Payment, Points

TOPIC = "payments"


def message_of(payment: dict[str, Any]) -> Message:
    """Returns the message about a payment."""
    return Message.of(TOPIC, json.dumps(payment), keys=[payment["payment_id"]])


def pay_on_commit(payment: dict[str, Any], send: Callable[[Message], object]) -> None:
    """Stores the payment, then sends the message.

    The message is lost if the process dies in between, or if the broker is unavailable.
    """
    with transaction.atomic():
        Payment.objects.create(**payment)
        transaction.on_commit(lambda: send(message_of(payment)))


class PaymentListener:
    """The transaction listener. Copy it to your program.

    It stores the payment and the state of its transaction in one local commit.
    """

    def execute_local_transaction(self, message: Message, payment: Any) -> LocalTransactionState:
        """Stores the payment. An exception counts as UNKNOWN, and a check-back decides."""
        with barrier(message):
            Payment.objects.create(**payment)
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns the decision stored with the transaction. Stores ROLLED_BACK first if no decision is stored."""
        return settle(message)


def give_points(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    """Stores the points of each payment once, one point per euro. This function is the consumer's listener."""
    for message in messages:
        payment = json.loads(message.body)
        with once(message, "points", payment["payment_id"], using="points") as is_first:
            if is_first:
                mine = {"payment_id": payment["payment_id"], "customer": payment["customer"], "points": payment["euros"]}
                Points.objects.using("points").create(**mine)
    return ConsumeStatus.CONSUME_SUCCESS
