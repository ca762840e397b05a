"""Implements pop consumption (POP).

The broker distributes individual messages to the consumers of a group. It hides each message during processing, and delivers it
again if it is not acknowledged in time.
"""

from rocketmq_broker.server.popping.build import build_popping
from rocketmq_broker.server.popping.errors import HandleExpired, IllegalHandle, PopError, TooManyPops
from rocketmq_broker.server.popping.in_hand import InHand
from rocketmq_broker.server.popping.next_messages import MAX_ATTEMPT_ID_LENGTH
from rocketmq_broker.server.popping.popped import PoppedMessage
from rocketmq_broker.server.popping.popping import REST_S, Popping
from rocketmq_broker.server.popping.receipt_handle import MAX_INVISIBLE_MS

__all__ = [
    "MAX_ATTEMPT_ID_LENGTH", "MAX_INVISIBLE_MS", "REST_S", "HandleExpired", "IllegalHandle", "InHand", "PopError",
    "PoppedMessage", "Popping", "TooManyPops", "build_popping",
]  # fmt: skip
