"""The consumer of refused credits in a session: the order service's real listener, without a thread to wait in."""

import asyncio
from functools import partial
from typing import Final, NoReturn

from demo.play.services.side import ProcessDied
from order_service.service_layer.cancelling import OrderCancelling
from order_service.service_layer.compensation_listener import CompensationListener
from rocketmq_broker.client import ConsumeContext, ConsumeStatus
from rocketmq_broker.message import MessageExt
from rocketmq_broker.testing.loops.page_loop import PageLoop

_FIRST_PAUSE_S: Final = 0.5
_MAX_PAUSE_S: Final = 10.0


class PageCompensation:
    """Calls the order service's listener outside the event loop, because a cancellation is a transaction that needs the loop.

    In production a thread of the consumer waits for the broker. Here, a wait ends the call, and the listener is called again.
    """

    def __init__(self, cancelling: OrderCancelling, loop: PageLoop) -> None:
        """`loop` is the session's event loop."""
        self._listener = CompensationListener(cancelling, hold=_end_call)
        self._loop = loop

    async def consume(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        """Consumes messages as the listener does. Raises MessagesWithdrawn if their queue was reassigned."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await self._loop.call_outside(partial(self._listener, messages, context))
            except _MustWait:
                await context.hold_async(pause_s)
                pause_s = min(2 * pause_s, _MAX_PAUSE_S)
            except ProcessDied:
                await asyncio.Event().wait()


class _MustWait(Exception):
    """Ends a call of the listener that would wait in its thread."""


def _end_call(context: ConsumeContext, seconds: float) -> NoReturn:
    raise _MustWait
