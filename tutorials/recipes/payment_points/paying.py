"""Two ways to pay and to tell the points: after the database commit by `on_commit`, and in a transaction of the broker."""

import json
from collections.abc import Callable
from typing import Any

from django.db import transaction

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, LocalTransactionState, Message, MessageExt
from rocketmq_broker.databases.django import barrier, once, settle
from tutorials.recipes.payment_points.models import Payment, Points

TOPIC = "payments"


def message_of(payment: dict[str, Any]) -> Message:
    """Returns the message that tells the points of a payment."""
    return Message.of(TOPIC, json.dumps(payment), keys=[payment["payment_id"]])


def pay_on_commit(payment: dict[str, Any], send: Callable[[Message], object]) -> None:
    """Stores the payment, and sends after that. It loses the message if the process dies in between, or the broker is away."""
    with transaction.atomic():
        Payment.objects.create(**payment)
        transaction.on_commit(lambda: send(message_of(payment)))


class PaymentListener:
    """The transaction listener, to copy: the payment and its transaction's state get one local commit."""

    def execute_local_transaction(self, message: Message, payment: Any) -> LocalTransactionState:
        """Stores the payment. An error leaves it and counts as UNKNOWN: the check-back decides."""
        with barrier(message):
            Payment.objects.create(**payment)
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Answers by the transaction's row; without one it writes ROLLED_BACK first."""
        return settle(message)


def give_points(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    """Writes the points of each payment once, a point for each euro. It is the consumer's listener."""
    for message in messages:
        payment = json.loads(message.body)
        with once(message, "points", payment["payment_id"], using="points") as is_first:
            if is_first:
                mine = {"payment_id": payment["payment_id"], "customer": payment["customer"], "points": payment["euros"]}
                Points.objects.using("points").create(**mine)
    return ConsumeStatus.CONSUME_SUCCESS
