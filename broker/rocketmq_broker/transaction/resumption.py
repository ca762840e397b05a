"""Decides whether a discarded message may be resumed, which starts its transaction again (RESUME_CHECK_HALF_MESSAGE).

A message is resumed at most once. RocketMQ resumes a message at each request, and may deliver it each time.
"""

from collections.abc import Iterable

from rocketmq_broker.message import sysflag
from rocketmq_broker.transaction.copies import origin_of
from rocketmq_broker.transaction.errors import AlreadyResumed, NotResumable
from rocketmq_broker.transaction.messages.half_message import DISCARD_TOPIC, HALF_TOPIC, HalfMessage


def refuse_if_not_resumable(discarded: HalfMessage, alike: Iterable[HalfMessage]) -> None:
    """Raises NotResumable if the message is not in the discard topic, and AlreadyResumed if it was resumed or delivered.

    `alike` contains the half messages and delivered messages with the same transaction id.
    """
    if discarded.topic != DISCARD_TOPIC:
        raise NotResumable("not discarded: only messages in TRANS_CHECK_MAX_TIME_TOPIC can be resumed")
    for message in alike:
        if origin_of(message) != origin_of(discarded):
            continue
        if message.topic == HALF_TOPIC:
            if message.commit_log_offset > discarded.commit_log_offset:
                raise AlreadyResumed("the message was already resumed")
        elif message.sys_flag & sysflag.TRANSACTION_MASK == sysflag.TRANSACTION_COMMIT_TYPE:
            raise AlreadyResumed("the message was already delivered")
