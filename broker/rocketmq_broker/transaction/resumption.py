"""The decision whether a discarded message may be resumed (RESUME_CHECK_HALF_MESSAGE).

RocketMQ resumes a message as often as operators ask, and may deliver it as often. Here a message is resumed once.
"""

from __future__ import annotations

from collections.abc import Iterable

from rocketmq_broker.message import sysflag
from rocketmq_broker.transaction.copies import origin_of
from rocketmq_broker.transaction.errors import AlreadyResumed, NotResumable
from rocketmq_broker.transaction.messages.half_message import DISCARD_TOPIC, HALF_TOPIC, HalfMessage


def refuse_if_not_resumable(discarded: HalfMessage, alike: Iterable[HalfMessage]) -> None:
    """Raises NotResumable unless the message lies in the discard topic; AlreadyResumed if it was later resumed or delivered.

    `alike` are the half messages and delivered messages with the same transaction id.
    """
    if discarded.topic != DISCARD_TOPIC:
        raise NotResumable("it was not discarded: TRANS_CHECK_MAX_TIME_TOPIC is where discarded messages are")
    for message in alike:
        if origin_of(message) != origin_of(discarded):
            continue
        if message.topic == HALF_TOPIC:
            if message.commit_log_offset > discarded.commit_log_offset:
                raise AlreadyResumed("it has been resumed already")
        elif message.sys_flag & sysflag.TRANSACTION_MASK == sysflag.TRANSACTION_COMMIT:
            raise AlreadyResumed("it has been delivered already")
