"""Failpoints that a demo arms in the running credit service and its worker (`service_runtime.failing.armed_failpoints`).

They are off unless the setting CREDIT_FAILPOINTS_FOLDER names the folder. In the order of the protocol's steps:

    lose-delivery                  the broker's answer to a pull does not arrive; the consumer pulls again
    exit-at-delivery               the credit service exits, as with kill -9, before it processes the message
    lose-task                      the task does not reach Redis; the credit service waits for its answer, and sends it again
    exit-before-credit-commit      a process of the worker exits, as with kill -9, before it stores the credit
    exit-after-credit-commit       a process of the worker exits, as with kill -9, after it has stored the credit
    exit-before-acknowledgement    the credit service exits, as with kill -9, before it sends its offset to the broker
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from credit_service.adapters.celery_tasks import CreditTasks, Task
from credit_service.adapters.credit_task import WriteEntries
from credit_service.adapters.credit_wire import WireCredit
from credit_service.service_layer.order_listener import CreditingListener
from rocketmq_broker.client import ConsumeContext, ConsumeStatus, RemotingCommand, RequestCode
from rocketmq_broker.message import MessageExt
from service_runtime.failing.armed_failpoints import ArmedFailpoints, FailedOnPurpose, exit_at_once

LOSE_DELIVERY: Final = "lose-delivery"
EXIT_AT_DELIVERY: Final = "exit-at-delivery"
LOSE_TASK: Final = "lose-task"
EXIT_BEFORE_CREDIT_COMMIT: Final = "exit-before-credit-commit"
EXIT_AFTER_CREDIT_COMMIT: Final = "exit-after-credit-commit"
EXIT_BEFORE_ACKNOWLEDGEMENT: Final = "exit-before-acknowledgement"


@dataclass(frozen=True, slots=True)
class FailingDelivery:
    """An RPC hook that drops the broker's responses to pulls (`rocketmq_broker.client.RpcHook`)."""

    failpoints: ArmedFailpoints

    def do_before_request(self, address: str, request: RemotingCommand) -> None:
        """Does nothing, because only responses are dropped."""

    def do_after_response(self, address: str, request: RemotingCommand, response: RemotingCommand) -> None:
        """Drops a response to a pull, by raising an error, if it contains the message of the armed failpoint."""
        if request.code == RequestCode.PULL_MESSAGE and self.failpoints.is_hit(LOSE_DELIVERY, response.body):
            raise FailedOnPurpose(LOSE_DELIVERY)


@dataclass(frozen=True, slots=True)
class FailingOrderListener:
    """Wraps the order listener, and ends the process before or after it at an armed failpoint."""

    listener: CreditingListener
    failpoints: ArmedFailpoints
    end_process: Callable[[], None] = exit_at_once

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        """Runs the listener. Ends the process before or after it if a failpoint is hit."""
        self._end_if_hit(EXIT_AT_DELIVERY, messages)
        status = self.listener(messages, context)
        self._end_if_hit(EXIT_BEFORE_ACKNOWLEDGEMENT, messages)
        return status

    def _end_if_hit(self, failpoint: str, messages: Sequence[MessageExt]) -> None:
        if any(self.failpoints.is_hit(failpoint, message.body, message.transaction_id) for message in messages):
            self.end_process()


@dataclass(frozen=True, slots=True)
class FailingTasks:
    """Wraps `CreditTasks`, and drops a task before it reaches Redis at an armed failpoint."""

    tasks: CreditTasks
    failpoints: ArmedFailpoints

    def send(self, task_id: str, credits: Sequence[WireCredit]) -> Task:
        """Sends the task, or drops it at an armed failpoint. A dropped task is never answered."""
        is_lost = any(_is_hit(self.failpoints, LOSE_TASK, credit) for credit in credits)
        return self.tasks.expect(task_id) if is_lost else self.tasks.send(task_id, credits)

    def expect(self, task_id: str) -> Task:
        """Returns the handle of a task that was sent earlier."""
        return self.tasks.expect(task_id)

    def waiting(self) -> int:
        """Returns the number of tasks that wait for a worker."""
        return self.tasks.waiting()

    def is_waiting(self, task_id: str) -> bool:
        """Returns True if a task with this id waits for a worker."""
        return self.tasks.is_waiting(task_id)


def failing(write: WriteEntries, failpoints: ArmedFailpoints, end_process: Callable[[], None] = exit_at_once) -> WriteEntries:
    """Wraps `write` in a function that ends the process before or after it at an armed failpoint."""

    def end_if_hit(failpoint: str, credits: Sequence[WireCredit]) -> None:
        if any(_is_hit(failpoints, failpoint, credit) for credit in credits):
            end_process()

    def write_or_end(credits: list[WireCredit]) -> list[str]:
        end_if_hit(EXIT_BEFORE_CREDIT_COMMIT, credits)
        outcomes = write(credits)
        end_if_hit(EXIT_AFTER_CREDIT_COMMIT, credits)
        return outcomes

    return write_or_end


def _is_hit(failpoints: ArmedFailpoints, failpoint: str, credit: WireCredit) -> bool:
    return failpoints.is_hit(failpoint, json.dumps(credit).encode(), credit.get("transaction_id"))
