"""Failpoints that a demo arms while the service runs: a file in a folder, named like the failpoint, used up when it is hit.

Off unless the setting ORDER_FAILPOINTS_FOLDER names the folder:

    hold-local-transaction     the local transaction begins 6 s late: a check-back comes before it
    exit-after-local-commit    the process ends, as by kill -9, before it sends COMMIT to the broker
    lose-commit                the broker is told UNKNOWN instead of COMMIT, as if COMMIT were lost on the way
    lose-rollback              likewise for ROLLBACK

What is in the file says for whom it is meant: a failpoint is hit by a message whose body holds it.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.client import LocalTransactionState, TransactionListener
from broker.message import Message, MessageExt
from order_service.service_layer.failpoints import EXIT_AFTER_LOCAL_COMMIT, exit_at_once

HOLD_LOCAL_TRANSACTION: Final = "hold-local-transaction"
LOSE_COMMIT: Final = "lose-commit"
LOSE_ROLLBACK: Final = "lose-rollback"
HELD_S: Final = 6.0

_LOST_BY = {
    LocalTransactionState.COMMIT_MESSAGE: LOSE_COMMIT,
    LocalTransactionState.ROLLBACK_MESSAGE: LOSE_ROLLBACK,
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ArmedFailpoints:
    """The failpoints of a folder; each is hit once, also when several processes share the folder."""

    folder: Path

    def is_hit(self, name: str, body: bytes) -> bool:
        """Whether the failpoint was armed for a message with this body; it is not armed any more then."""
        armed = self.folder / name
        try:
            if armed.read_bytes().strip() not in body:
                return False
            armed.unlink()
        except FileNotFoundError:
            return False
        logger.warning("failpoint %s is hit", name)
        return True


@dataclass(frozen=True, slots=True)
class FailingListener:
    """A TransactionListener that fails on purpose where a failpoint is armed; check-backs are answered as ever."""

    listener: TransactionListener
    failpoints: ArmedFailpoints
    end_process: Callable[[], None] = exit_at_once
    wait: Callable[[float], None] = time.sleep

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """What the listener decides, unless a failpoint is hit."""
        if self.failpoints.is_hit(HOLD_LOCAL_TRANSACTION, message.body):
            self.wait(HELD_S)
        decision = self._decided(message, arg)
        if decision is LocalTransactionState.COMMIT_MESSAGE and self.failpoints.is_hit(EXIT_AFTER_LOCAL_COMMIT, message.body):
            self.end_process()
        lost_by = _LOST_BY.get(decision)
        if lost_by is not None and self.failpoints.is_hit(lost_by, message.body):
            return LocalTransactionState.UNKNOWN
        return decision

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """See `TransactionListener`."""
        answer = self.listener.check_local_transaction(message)
        assert isinstance(answer, LocalTransactionState)
        return answer

    def _decided(self, message: Message, arg: object) -> LocalTransactionState:
        decision = self.listener.execute_local_transaction(message, arg)
        assert isinstance(decision, LocalTransactionState)
        return decision
