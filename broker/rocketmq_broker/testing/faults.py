"""What goes wrong from now on, as the test has asked for it."""

from __future__ import annotations

from collections.abc import Iterable

from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.testing.apache import LikeApache


class Faults:
    """Filled by the test, carried out by the door, and the same after the broker's restart."""

    def __init__(self) -> None:
        self.decisions_to_lose = 0
        self.answers_to_lose = 0
        self.keys_of_answers_to_lose: set[str] = set()
        self.refuse_sends_with: ResponseCode | None = None
        self.refusals_left: int | None = None
        self.are_checks_held = False
        self.like_apache: LikeApache | None = None

    def takes_answer(self, keys: Iterable[str | None]) -> bool:
        """Whether the answer to a message with these keys is lost. What the test asked for is used up by it."""
        if self.answers_to_lose > 0:
            self.answers_to_lose -= 1
            return True
        found = self.keys_of_answers_to_lose.intersection(keys)
        self.keys_of_answers_to_lose -= found
        return bool(found)
