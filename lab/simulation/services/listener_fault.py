"""The fault of a consumer's listener: each call fails, before the listener has seen the messages."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, MessageListener
from rocketmq_broker.message import MessageExt
from rocketmq_broker.testing.simulation.network.notes import nothing


class ListenerFails(Exception):
    """The error that a failing listener raises."""


@dataclass(slots=True)
class ListenerFault:
    """The fault of the listener of one service. It affects also a process that is started during the fault."""

    how: str | None = None
    """ "raises" if each call raises an error, "later" if it requests a redelivery, None without a fault."""
    on_call: Callable[[], object] = nothing
    """Called at each call that fails."""

    def begin(self, how: str, on_call: Callable[[], object]) -> None:
        """Makes each call fail."""
        self.how, self.on_call = how, on_call

    def end(self) -> None:
        """Ends the fault."""
        self.how, self.on_call = None, nothing

    def around(self, listener: MessageListener) -> MessageListener:
        """Returns a listener that calls `listener` while there is no fault."""

        def call(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus | Awaitable[ConsumeStatus | None] | None:
            if self.how is None:
                return listener(messages, context)
            self.on_call()
            if self.how == "later":
                return ConsumeStatus.RECONSUME_LATER
            raise ListenerFails("the listener fails")

        return call
