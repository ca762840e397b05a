"""Consumes one message at an operator's request (RocketMQ's ConsumeMessageService.consumeMessageDirectly).

The consumer's offsets do not change, and a failed message is not returned to the broker.
"""

from collections.abc import Callable
from functools import partial

from rocketmq_broker.client.listeners import ConsumeContext, ConsumeStatus, MessageListener
from rocketmq_broker.client.pull.pull_loop import with_real_topic
from rocketmq_broker.client.pull.withdrawal import Withdrawal
from rocketmq_broker.client.push.listener_runners import ListenerRunner
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.protocol.bodies.running_info import CMResult, ConsumeMessageDirectlyResult
from rocketmq_broker.world import World

_RESULTS = {ConsumeStatus.CONSUME_SUCCESS: CMResult.CR_SUCCESS, ConsumeStatus.RECONSUME_LATER: CMResult.CR_LATER}


class DirectConsumption:
    """Calls the listener with single messages, in the same threads or tasks as for pulled messages."""

    def __init__(self, listener: MessageListener, runner: ListenerRunner, world: World, *, is_orderly: bool) -> None:
        self._listener = listener
        self._runner = runner
        self._is_orderly = is_orderly
        self._withdrawn = Withdrawal(world.watch)
        self._now_s = world.steady_s

    def consume(self, message: MessageExt, on_done: Callable[[ConsumeMessageDirectlyResult], None]) -> None:
        """Calls the listener with only this message, and passes the result to `on_done` on the event loop."""
        queue = MessageQueue(message.topic, message.broker_name, message.queue_id)
        context = ConsumeContext(queue, withdrawn=self._withdrawn)
        listener, messages = self._listener, [with_real_topic(message)]
        self._runner.submit(lambda: listener(messages, context), partial(self._answered, on_done, context, self._now_s()))

    def withdraw(self) -> None:
        """Signals a listener that waits in `ConsumeContext.hold` to stop. Called at the consumer's shutdown."""
        self._withdrawn.set()

    def _answered(
        self,
        on_done: Callable[[ConsumeMessageDirectlyResult], None],
        context: ConsumeContext,
        began_s: float,
        status: ConsumeStatus | None,
        error: BaseException | None,
    ) -> None:
        remark = None if error is None else f"{type(error).__name__}: {error}"
        on_done(
            ConsumeMessageDirectlyResult(
                order=self._is_orderly,
                consume_result=_result(status, context, error),
                remark=remark,
                spent_time_mills=int((self._now_s() - began_s) * 1000),
            )
        )


def _result(status: ConsumeStatus | None, context: ConsumeContext, error: BaseException | None) -> CMResult:
    if error is not None:
        return CMResult.CR_THROW_EXCEPTION
    if status is ConsumeStatus.CONSUME_SUCCESS and context.postponed:
        return CMResult.CR_LATER
    return _RESULTS.get(status, CMResult.CR_RETURN_NULL) if isinstance(status, ConsumeStatus) else CMResult.CR_RETURN_NULL
