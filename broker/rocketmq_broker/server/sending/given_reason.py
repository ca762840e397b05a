"""Checks the reason that an operator gives for a manual action."""

from typing import Final

from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused

MAX_REASON_LENGTH: Final = 1000
"""The maximum length of a reason in characters.

The reason shares 32 KiB with the other properties of the message that contains it.
"""


def acceptable_reason(reason: str, *, what_for: str) -> str:
    """Returns the stripped reason.

    Raises RequestRefused if the reason is missing, too long or not printable. `what_for` names the action in the error text.
    """
    reason = reason.strip()
    if not reason:
        raise RequestRefused(ResponseCode.MESSAGE_ILLEGAL, f"{what_for} requires a reason")
    if len(reason) > MAX_REASON_LENGTH:
        remark = f"reason too long: {len(reason)} characters, limit {MAX_REASON_LENGTH}"
        raise RequestRefused(ResponseCode.MESSAGE_ILLEGAL, remark)
    if not reason.isprintable():
        remark = "the reason contains control characters or line breaks: remove them"
        raise RequestRefused(ResponseCode.MESSAGE_ILLEGAL, remark)
    return reason
