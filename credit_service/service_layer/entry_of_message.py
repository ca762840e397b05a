"""The ledger's entry for a message: a credit for a created order, a reversal for a cancelled one."""

from credit_service.domain.credit import Credit
from order_messages import order_cancelled
from order_messages.order_cancelled import OrderCancelled
from order_messages.order_created import OrderCreated
from order_messages.states import EntryKind
from rocketmq_broker.message import MessageExt
from service_runtime.observing.log_context import REQUEST_ID


def entry_of(message: MessageExt) -> Credit:
    """Returns the entry. Raises UnreadableBody."""
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
