"""What goes wrong from now on, as the test has asked for it."""

from __future__ import annotations

from broker.protocol.codes import ResponseCode
from broker.testing.apache import LikeApache


class Faults:
    """Filled by the test, carried out by the door, and the same after the broker's restart."""

    def __init__(self) -> None:
        self.decisions_to_lose = 0
        self.answers_to_lose = 0
        self.refuse_sends_with: ResponseCode | None = None
        self.refusals_left: int | None = None
        self.are_checks_held = False
        self.like_apache: LikeApache | None = None
