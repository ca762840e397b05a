"""What the health of a service says of its inbox."""

from typing import Any

import pytest

from rocketmq_broker.databases.inbox import InboxState
from service_runtime.database.database_errors import DatabaseUnavailable
from service_runtime.inbox.backlog import Backlog

NOW_MS = 1_000_000


def a_state(*, new: int = 0, failed: int = 0, suspected: int = 0, parked: int = 0, age_s: float = 0) -> InboxState:
    since_ms = NOW_MS - int(age_s * 1000)
    return InboxState(
        new, failed, suspected, parked, oldest_new_at_ms=since_ms if new else None,
        oldest_received_at_ms=since_ms if new + failed else None, last_error="ValueError: no" if failed else None,
    )  # fmt: skip


class Inbox:
    def __init__(self, state: InboxState | Exception) -> None:
        self._state = state

    def state(self) -> InboxState:
        if isinstance(self._state, Exception):
            raise self._state
        return self._state


def backlog(state: InboxState | Exception) -> Backlog:
    inbox: Any = Inbox(state)
    return Backlog(inbox, "credit_service", lambda: NOW_MS)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (a_state(), None),
        (a_state(new=10_000, age_s=29), None),
        (a_state(new=2, age_s=31), "2 messages wait to be processed, the oldest for 31 s"),
        (a_state(failed=9, age_s=60), "9 messages fail, and none is processed: ValueError: no"),
        (a_state(failed=9, suspected=9, age_s=60), None),
        (a_state(failed=9, suspected=8, age_s=60), None),
        (a_state(failed=9, suspected=7, age_s=60), "9 messages fail, and none is processed: ValueError: no"),
        (a_state(failed=9, age_s=2), None),
        (a_state(parked=9), None),
        (a_state(new=1, failed=1, age_s=31), "2 messages wait to be processed, the oldest for 31 s: ValueError: no"),
        (DatabaseUnavailable("away"), None),
    ],
)  # fmt: skip
def test_a_service_is_not_ready_while_nothing_is_processed_for_long(state: InboxState | Exception, reason: str | None) -> None:
    assert backlog(state).why_unready() == reason


def test_one_message_that_fails_asks_for_attention_also_while_no_other_passes() -> None:
    """One alone may be a bad order in a quiet shop: without this line no one would learn of it."""
    for suspected in (0, 1):
        state = a_state(failed=1, suspected=suspected, age_s=60)
        assert backlog(state).attention(state) == ["1 messages fail, and are tried again: ValueError: no"]
    assert backlog(a_state()).attention(a_state(new=3)) == []
    assert backlog(a_state()).attention(None) == []


def test_parked_messages_ask_for_attention_with_the_command_to_run() -> None:
    state = a_state(parked=3)
    (line,) = backlog(state).attention(state)
    assert line.startswith("3 messages are parked: list them with `python -m credit_service inbox list`")
    assert line.endswith("`python -m credit_service inbox retry`")


def test_the_report_has_the_numbers_and_an_age_only_while_something_waits() -> None:
    health = backlog(a_state()).health(a_state(new=2, failed=1, age_s=12.34))
    assert health is not None
    assert (health.waiting, health.failed, health.parked, health.oldest_s) == (3, 1, 0, 12.3)
    idle = backlog(a_state()).health(a_state(parked=1))
    assert idle is not None
    assert (idle.waiting, idle.parked, idle.oldest_s) == (0, 1, None)
    assert backlog(a_state()).health(None) is None
