"""The renewal of invisible times for push consumers (RocketMQ's DefaultReceiptHandleManager).

A push consumer requests messages with `auto_renew` instead of an invisible time. The messages stay invisible while the consumer
processes them, and become visible again soon after the consumer disconnects.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.proxy.connections.session import ClientSession
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.popping import PopError, PoppedMessage, Popping
from rocketmq_broker.server.popping.receipt_handle import ReceiptHandle
from rocketmq_broker.store import StoreUnwritable

logger = logging.getLogger(__name__)

INVISIBLE_MS: Final = 60_000
"""The invisible time of each renewal, in milliseconds. A crashed client's messages become visible again within this time."""
LOOK_EVERY_S: Final = 5.0
_RENEWED_BEFORE_MS: Final = 20_000
_MAX_MS: Final = 3 * 3600 * 1000
"""The maximum time for which the invisible time of a message is renewed, in milliseconds, as in RocketMQ."""


@dataclass(slots=True)
class _Renewed:
    session: ClientSession
    topic: str
    handle: str
    since_ms: int
    due_ms: int


class Renewals:
    """The messages that are being renewed, keyed by group and by the receipt handle that the client received."""

    def __init__(self, popping: Popping, clock: Callable[[], int]) -> None:
        self._popping = popping
        self._clock = clock
        self._renewed: dict[tuple[str, str], _Renewed] = {}

    def __len__(self) -> int:
        return len(self._renewed)

    def add(self, session: ClientSession, group: str, message: PoppedMessage) -> None:
        """Starts renewing the message's invisible time."""
        due_ms = message.pop_time_ms + message.invisible_ms - _RENEWED_BEFORE_MS
        renewed = _Renewed(session, message.topic, message.handle, message.pop_time_ms, due_ms)
        self._renewed[group, message.handle] = renewed

    def take(self, group: str, handle: str) -> str:
        """Stops renewing a message. Returns its current receipt handle, which replaces the client's handle."""
        renewed = self._renewed.pop((group, handle), None)
        return handle if renewed is None else renewed.handle

    def look(self) -> None:
        """Renews the messages that are due, and drops those of disconnected clients. Call it every few seconds."""
        now_ms = self._clock()
        for (group, handle), renewed in list(self._renewed.items()):
            is_held = renewed.session.has_telemetry and now_ms - renewed.since_ms <= _MAX_MS
            if is_held and renewed.due_ms <= now_ms:
                is_held = self._renew(group, renewed, now_ms)
            if not is_held:
                del self._renewed[group, handle]

    def _renew(self, group: str, renewed: _Renewed, now_ms: int) -> bool:
        try:
            handle, _ = self._popping.deliveries.renew(group, renewed.topic, ReceiptHandle.parse(renewed.handle), INVISIBLE_MS)
        except (PopError, RequestRefused):
            return False  # it was acknowledged, or delivered to another client
        except StoreUnwritable as error:
            logger.warning("cannot renew an invisible time: %s", error)
            return True
        renewed.handle, renewed.due_ms = str(handle), now_ms + INVISIBLE_MS - _RENEWED_BEFORE_MS
        return True
