"""The faults that a test has asked for."""

from __future__ import annotations

from collections.abc import Iterable

from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.testing.apache import LikeApache


class Faults:
    """Faults, set by the test and made by the door. They outlive the broker's restart."""

    def __init__(self) -> None:
        self.decisions_to_lose = 0
        self.answers_to_lose = 0
        self.keys_of_answers_to_lose: set[str] = set()
        self.refuse_sends_with: ResponseCode | None = None
        self.refusals_left: int | None = None
        self.are_checks_held = False
        self.like_apache: LikeApache | None = None

    def takes_answer(self, keys: Iterable[str | None]) -> bool:
        """Returns whether to lose the answer to a message with these keys, and counts the loss."""
        if self.answers_to_lose > 0:
            self.answers_to_lose -= 1
            return True
        found = self.keys_of_answers_to_lose.intersection(keys)
        self.keys_of_answers_to_lose -= found
        return bool(found)
