"""Tests repeated reconciliation."""

import threading

from pipelines.commands.watch_command import watch
from pipelines.errors import UnreadableDatabase


class Turns:
    """Turns with given outcomes. The last turn stops the watch."""

    def __init__(self, *outcomes: str | Exception) -> None:
        self.outcomes = list(outcomes)
        self.stopping = threading.Event()
        self.said: list[str] = []

    def __call__(self) -> str:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def say(self, line: str) -> None:
        self.said.append(line)
        if not self.outcomes:
            self.stopping.set()


class Impatient(threading.Event):
    """An event that does not wait, but records the requested time."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        return self.is_set()


def test_a_turn_that_fails_costs_itself_and_nothing_else() -> None:
    turns = Turns("consistent", UnreadableDatabase("database orders: away"), "consistent again")
    turns.stopping = Impatient()
    assert watch(turns, turns.say, turns.stopping, 20) == 1
    assert turns.said == ["consistent", "could not tell: database orders: away", "consistent again"]
    assert turns.stopping.waited == [20, 20, 20]


def test_turns_never_follow_one_another_without_a_pause() -> None:
    turns = Turns("consistent")
    turns.stopping = Impatient()
    watch(turns, turns.say, turns.stopping, 0)
    assert turns.stopping.waited == [1.0]


def test_a_watch_that_is_stopped_takes_no_turn() -> None:
    turns = Turns("never")
    turns.stopping.set()
    assert watch(turns, turns.say, turns.stopping, 20) == 0
    assert turns.said == []
