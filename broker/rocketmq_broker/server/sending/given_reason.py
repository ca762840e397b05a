"""Checks the reason that an operator gives for a decision or treatment by hand."""

from __future__ import annotations

from typing import Final

from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused

MAX_REASON_LENGTH: Final = 1000
"""Characters. It shares 32 KiB with the other properties of the message that keeps it."""


def acceptable_reason(reason: str, *, what_for: str) -> str:
    """Returns the stripped reason. Raises RequestRefused if it is missing or cannot be kept; `what_for` names the action."""
    reason = reason.strip()
    if not reason:
        raise RequestRefused(ResponseCode.MESSAGE_ILLEGAL, f"{what_for} needs a reason")
    if len(reason) > MAX_REASON_LENGTH:
        raise RequestRefused(
            ResponseCode.MESSAGE_ILLEGAL, f"the reason has {len(reason)} characters; {MAX_REASON_LENGTH} are allowed"
        )
    if not reason.isprintable():
        raise RequestRefused(ResponseCode.MESSAGE_ILLEGAL, "the reason holds control characters or line breaks")
    return reason
