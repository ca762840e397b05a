"""Failpoints that a demo arms in the running credit service and its worker.

They are off unless the setting CREDIT_FAILPOINTS_FOLDER names the folder (see
`service_runtime.failing.armed_failpoints`). In the order of the protocol's steps:

    lose-delivery                  the broker's response to a pull does not arrive; the consumer pulls again
    exit-at-delivery               the credit service exits, as with kill -9, before it stores the message
    exit-before-acknowledgement    the credit service exits, as with kill -9, before it sends its offset to the broker
    lose-task                      the task does not reach Redis; the credit service sends another within a second
    exit-before-credit-commit      a process of the worker exits, as with kill -9, before it stores the credit
    exit-after-credit-commit       a process of the worker exits, as with kill -9, after it has stored the credit
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Final

from sqlmodel import Session

from credit_service.adapters.drain_task import TaskSender
from rocketmq_broker.client import ConsumeContext, ConsumeStatus, MessageListener, RemotingCommand, RequestCode
from rocketmq_broker.databases.inbox import Handler, InboxMessage
from rocketmq_broker.message import MessageExt
from service_runtime.failing.armed_failpoints import ArmedFailpoints, FailedOnPurpose, exit_at_once

LOSE_DELIVERY: Final = "lose-delivery"
EXIT_AT_DELIVERY: Final = "exit-at-delivery"
LOSE_TASK: Final = "lose-task"
EXIT_BEFORE_CREDIT_COMMIT: Final = "exit-before-credit-commit"
EXIT_AFTER_CREDIT_COMMIT: Final = "exit-after-credit-commit"
EXIT_BEFORE_ACKNOWLEDGEMENT: Final = "exit-before-acknowledgement"


@dataclass(frozen=True, slots=True)
class CreditFailpoints:
    """The failpoints of the credit service and its worker. Each method wraps a step."""

    failpoints: ArmedFailpoints
    end_process: Callable[[], None] = exit_at_once
    _written: list[InboxMessage] = field(default_factory=list)
    _task_is_lost: threading.Event = field(default_factory=threading.Event)

    def do_before_request(self, address: str, request: RemotingCommand) -> None:
        """Does nothing, because only responses are dropped (`rocketmq_broker.client.RpcHook`)."""

    def do_after_response(self, address: str, request: RemotingCommand, response: RemotingCommand) -> None:
        """Drops a response to a pull, by raising an error, if it contains the message of the armed failpoint."""
        if request.code == RequestCode.PULL_MESSAGE and self.failpoints.is_hit(LOSE_DELIVERY, response.body):
            raise FailedOnPurpose(LOSE_DELIVERY)

    def listener(self, listener: MessageListener) -> MessageListener:
        """Returns a listener that ends the process before or after calling `listener`, or causes the next task to be lost."""

        def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
            self._end_if_hit(EXIT_AT_DELIVERY, messages)
            if any(self._is_hit(LOSE_TASK, message) for message in messages):
                self._task_is_lost.set()
            status: ConsumeStatus = listener(messages, context)  # type: ignore[assignment]
            self._end_if_hit(EXIT_BEFORE_ACKNOWLEDGEMENT, messages)
            return status

        return listen

    def sending(self, tasks: TaskSender) -> Callable[[], None]:
        """Returns a function like `tasks.send_if_due` that drops the first task after an armed failpoint was hit."""

        def send_if_due() -> None:
            if self._task_is_lost.is_set() and tasks.inbox.is_due():
                self._task_is_lost.clear()
            else:
                tasks.send_if_due()

        return send_if_due

    def handler(self, handle: Handler[Session]) -> Handler[Session]:
        """Returns a handler of the inbox that ends the process before the database commit."""

        def handle_or_end(session: Session, messages: Sequence[InboxMessage]) -> bool | None:
            has_changed = handle(session, messages)
            self._end_if_hit(EXIT_BEFORE_CREDIT_COMMIT, messages)
            self._written[:] = messages
            return has_changed

        return handle_or_end

    @contextmanager
    def session(self, sessions: Callable[[], AbstractContextManager[Session]]) -> Iterator[Session]:
        """Yields a session of `sessions`, and ends the process after its database commit."""
        self._written.clear()
        with sessions() as session:
            yield session
        self._end_if_hit(EXIT_AFTER_CREDIT_COMMIT, self._written)

    def _end_if_hit(self, failpoint: str, messages: Sequence[MessageExt | InboxMessage]) -> None:
        if any(self._is_hit(failpoint, message) for message in messages):
            self.end_process()

    def _is_hit(self, failpoint: str, message: MessageExt | InboxMessage) -> bool:
        return self.failpoints.is_hit(failpoint, message.body, message.transaction_id)
