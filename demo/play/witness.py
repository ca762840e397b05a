"""The events of a diagram that no broker records: the services' steps, lost decisions, and messages between the services."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from credit_service.adapters.ledger import CONSUMER
from demo.play.services.side import SessionEvent
from order_messages import credit_refused
from order_service.adapters.order_broker import PRODUCER_GROUP
from rocketmq_broker.admin.timeline.event import BROKER, Arrow, Event
from rocketmq_broker.testing.journal import JournalEvent

_ON_RECORD: Final = "this page"
"""What has recorded an event (`Event.on_record`)."""
_LOST: Final = re.compile(rf"{PRODUCER_GROUP}: (COMMIT|ROLLBACK) was lost")
_DELIVERED: Final = f"{CONSUMER} gets the message from "
_REFUSALS: Final = {
    f"{CONSUMER} sends a message to {credit_refused.TOPIC}": Arrow(CONSUMER, BROKER, "credit refused"),
    f"{PRODUCER_GROUP} gets the message from {credit_refused.TOPIC}": Arrow(BROKER, PRODUCER_GROUP, "credit refused"),
}


def witnessed(
    history: Iterable[SessionEvent | JournalEvent], transaction_id: str, order_id: str | None, begun_ms: int
) -> Iterator[Event]:
    """Yields the events of a transaction and, with `order_id`, the refusals of the order's credit, in the order of `history`.

    `begun_ms` is the time at which the history began, in milliseconds since the epoch.
    """
    is_delivered, latest = False, ""
    for event in history:
        arrow: Arrow | None = None
        if isinstance(event, SessionEvent):
            arrow = event.step.arrow if event.step is not None and event.step.transaction_id == transaction_id else None
        elif transaction_id in event.keys:
            arrow = _arrow_of(event.text, is_delivered=is_delivered)
            is_delivered = is_delivered or event.text.startswith(_DELIVERED)
        elif order_id in event.keys and event.text in _REFUSALS and event.text != latest:
            latest = event.text  # a message that the broker does not take is sent again, and drawn once
            arrow = _REFUSALS[latest]
        if arrow is not None:
            yield Event(begun_ms + round(event.at_s * 1000), event.text, _ON_RECORD, arrow)


def _arrow_of(text: str, *, is_delivered: bool) -> Arrow | None:
    """Returns the arrow of a decision that was lost, or of a delivery after the first one, which the broker's offsets show."""
    if found := _LOST.match(text):
        return Arrow(PRODUCER_GROUP, BROKER, found[1], is_lost=True)
    return Arrow(BROKER, CONSUMER, "message again") if is_delivered and text.startswith(_DELIVERED) else None
