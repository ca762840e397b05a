"""The renewal of invisible times for push consumers (RocketMQ's DefaultReceiptHandleManager).

A push consumer asks for messages without an invisible time (`auto_renew`): they stay hidden as long as it works on them. They
come back soon after it is gone.
"""

from __future__ import annotations

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
"""The invisible time of such a message, again and again: so late it comes back from a client that died."""
LOOK_EVERY_S: Final = 5.0
_RENEWED_BEFORE_MS: Final = 20_000
_MAX_MS: Final = 3 * 3600 * 1000
"""After so long in one client's hands a message is renewed no more, as in RocketMQ."""


@dataclass(slots=True)
class _Renewed:
    session: ClientSession
    topic: str
    handle: str
    since_ms: int
    due_ms: int


class Renewals:
    """The messages that are renewed, by group and the handle that their client knows."""

    def __init__(self, popping: Popping, clock: Callable[[], int]) -> None:
        self._popping = popping
        self._clock = clock
        self._renewed: dict[tuple[str, str], _Renewed] = {}

    def __len__(self) -> int:
        return len(self._renewed)

    def add(self, session: ClientSession, group: str, message: PoppedMessage) -> None:
        """Renews the message's invisible time from now on."""
        due_ms = message.pop_time_ms + message.invisible_ms - _RENEWED_BEFORE_MS
        renewed = _Renewed(session, message.topic, message.handle, message.pop_time_ms, due_ms)
        self._renewed[group, message.handle] = renewed

    def take(self, group: str, handle: str) -> str:
        """Returns the handle that counts now in place of the client's, and renews it no more."""
        renewed = self._renewed.pop((group, handle), None)
        return handle if renewed is None else renewed.handle

    def look(self) -> None:
        """Renews what is due, and forgets what its client holds no longer. Call it every few seconds."""
        now_ms = self._clock()
        for (group, handle), renewed in list(self._renewed.items()):
            is_held = renewed.session.can_be_asked and now_ms - renewed.since_ms <= _MAX_MS
            if is_held and renewed.due_ms <= now_ms:
                is_held = self._renew(group, renewed, now_ms)
            if not is_held:
                del self._renewed[group, handle]

    def _renew(self, group: str, renewed: _Renewed, now_ms: int) -> bool:
        try:
            handle, _ = self._popping.handed_out.renew(group, renewed.topic, ReceiptHandle.parse(renewed.handle), INVISIBLE_MS)
        except (PopError, RequestRefused):
            return False  # acknowledged, or given to another by now
        except StoreUnwritable as error:
            logger.warning("an invisible time is not renewed: %s", error)
            return True
        renewed.handle, renewed.due_ms = str(handle), now_ms + INVISIBLE_MS - _RENEWED_BEFORE_MS
        return True
