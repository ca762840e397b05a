"""The failpoints of the order service. Demos and tests use them to make the service fail at an exact step.

A demo arms a failpoint in a running service with a file in the folder ORDER_FAILPOINTS_FOLDER (see
`service_runtime.failing.armed_failpoints`). The setting FAILPOINTS arms one for the lifetime of the process: with
`exit-after-local-commit:every=N` it fails at every Nth local commit. Without these settings no failpoint is armed.
These are the failpoints, in the order of the protocol's steps:

    lose-half-message            the half message is not sent; the client sends it again, in a new transaction
    lose-half-message-answer     the half message is stored, but the response is dropped; the client sends again
    hold-local-transaction       the local transaction starts 6 s late, so that a check-back arrives first
    exit-before-local-commit     the process exits, as with kill -9, before the local transaction
    exit-after-local-commit      the process exits, as with kill -9, before it sends COMMIT to the broker
    lose-commit                  COMMIT is not sent
    lose-rollback                ROLLBACK is not sent
    lose-check-back              a check-back is dropped
    lose-check-back-answer       the response to a check-back is not sent
"""

import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from order_service.service_layer.attempt import Attempt, Outcome
from rocketmq_broker.client import LocalTransactionState, RemotingCommand, RequestCode, TransactionListener
from rocketmq_broker.message import Message, MessageExt, properties
from service_runtime.failing.armed_failpoints import FailedOnPurpose, Failpoints, exit_at_once

LOSE_HALF_MESSAGE: Final = "lose-half-message"
LOSE_HALF_MESSAGE_ANSWER: Final = "lose-half-message-answer"
HOLD_LOCAL_TRANSACTION: Final = "hold-local-transaction"
EXIT_BEFORE_LOCAL_COMMIT: Final = "exit-before-local-commit"
EXIT_AFTER_LOCAL_COMMIT: Final = "exit-after-local-commit"
LOSE_COMMIT: Final = "lose-commit"
LOSE_ROLLBACK: Final = "lose-rollback"
LOSE_CHECK_BACK: Final = "lose-check-back"
LOSE_CHECK_BACK_ANSWER: Final = "lose-check-back-answer"
HELD_S: Final = 6.0

logger = logging.getLogger(__name__)

_LOST_BY = {
    LocalTransactionState.COMMIT_MESSAGE: LOSE_COMMIT,
    LocalTransactionState.ROLLBACK_MESSAGE: LOSE_ROLLBACK,
}
_PROPERTIES_OF_V2 = "i"


@dataclass(frozen=True, slots=True)
class EveryNth:
    """A failpoint that is hit by every `n`th message. Thread-safe."""

    failpoint: str
    n: int
    _passed: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def is_hit(self, name: str, content: bytes, transaction_id: str | None = None) -> bool:
        """Counts the message if `name` is this failpoint. Returns True for every `n`th message."""
        is_hit = name == self.failpoint and next(self._passed) % self.n == 0
        if is_hit:
            logger.warning("failpoint %s was hit", name)
        return is_hit


def parse_failpoints(text: str) -> tuple[EveryNth, ...]:
    """Parses the setting FAILPOINTS. Returns an empty tuple for an empty text. Raises ValueError for an invalid text."""
    if not text.strip():
        return ()
    name, _, argument = text.strip().partition(":")
    key, _, number = argument.partition("=")
    if name != EXIT_AFTER_LOCAL_COMMIT or key != "every" or not number.isdecimal() or int(number) < 1:
        raise ValueError(f"invalid failpoint {text!r}; use {EXIT_AFTER_LOCAL_COMMIT}:every=N with N of at least 1")
    return (EveryNth(name, int(number)),)


@dataclass(frozen=True, slots=True)
class FailingTransactionListener:
    """Wraps a TransactionListener, and fails deliberately at an armed failpoint."""

    listener: TransactionListener
    failpoints: Failpoints
    lose_decision: Callable[[str, str], None]
    """Drops the next END_TRANSACTION of a transaction. Takes the transaction id and the failpoint's name."""
    wait: Callable[[float], None]
    end_process: Callable[[], None] = exit_at_once

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Runs the listener and returns its decision. The decision does not reach the broker if a failpoint is hit."""
        if self._is_hit(HOLD_LOCAL_TRANSACTION, message):
            self.wait(HELD_S)
        if self._is_hit(EXIT_BEFORE_LOCAL_COMMIT, message):
            self.end_process()
        decision = self.listener.execute_local_transaction(message, arg)
        assert isinstance(decision, LocalTransactionState)
        awaits_payment = isinstance(arg, Attempt) and arg.outcome is Outcome.AWAITING_PAYMENT
        is_stored = awaits_payment or decision is LocalTransactionState.COMMIT_MESSAGE
        if is_stored and self._is_hit(EXIT_AFTER_LOCAL_COMMIT, message):
            self.end_process()
        self._lose(_LOST_BY.get(decision), message)
        return decision

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Runs the listener and returns its decision. The decision does not reach the broker if a failpoint is hit."""
        answer = self.listener.check_local_transaction(message)
        assert isinstance(answer, LocalTransactionState)
        self._lose(LOSE_CHECK_BACK_ANSWER, message)
        return answer

    def _lose(self, failpoint: str | None, message: Message) -> None:
        if failpoint is not None and message.transaction_id is not None and self._is_hit(failpoint, message):
            self.lose_decision(message.transaction_id, failpoint)

    def _is_hit(self, failpoint: str, message: Message) -> bool:
        return self.failpoints.is_hit(failpoint, message.body, message.transaction_id)


@dataclass(frozen=True, slots=True)
class FailingNetwork:
    """An RPC hook (`rocketmq_broker.client.RpcHook`). It drops a frame by raising an error, as if the connection had failed."""

    failpoints: Failpoints
    _decisions_to_lose: dict[str, str] = field(default_factory=dict)

    def lose_decision(self, transaction_id: str, failpoint: str) -> None:
        """Drops the next END_TRANSACTION of the transaction. Thread-safe."""
        self._decisions_to_lose[transaction_id] = failpoint

    def do_before_request(self, address: str, request: RemotingCommand) -> None:
        """Drops outgoing half messages and decisions, and incoming check-backs."""
        if request.code == RequestCode.SEND_MESSAGE_V2:
            self._lose_if_hit(LOSE_HALF_MESSAGE, request.body)
        elif request.code == RequestCode.CHECK_TRANSACTION_STATE:
            self._lose_if_hit(LOSE_CHECK_BACK, request.body, request.ext_fields().get("transactionId"))
        elif request.code == RequestCode.END_TRANSACTION:
            failpoint = self._decisions_to_lose.pop(request.ext_fields()["msgId"], None)
            if failpoint is not None:
                raise FailedOnPurpose(failpoint)

    def do_after_response(self, address: str, request: RemotingCommand, response: RemotingCommand) -> None:
        """Drops the broker's response to a stored half message."""
        if request.code == RequestCode.SEND_MESSAGE_V2:
            encoded = request.ext_fields().get(_PROPERTIES_OF_V2, "").encode()
            self._lose_if_hit(LOSE_HALF_MESSAGE_ANSWER, request.body, properties.find(encoded, properties.UNIQUE_KEY))

    def _lose_if_hit(self, failpoint: str, content: bytes, transaction_id: str | None = None) -> None:
        if self.failpoints.is_hit(failpoint, content, transaction_id):
            raise FailedOnPurpose(failpoint)
