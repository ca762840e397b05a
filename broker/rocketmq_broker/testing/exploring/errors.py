"""Defines the errors that an exploration raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocketmq_broker.testing.exploring.search.worlds import FoundBroken


class UnusableTest(TypeError):
    """Raised if the test cannot be explored as written. The message describes how to change it."""


class ProgramFailed(AssertionError):
    """Raised if a program ended with an error that no fault explains. `__cause__` is the program's error."""


class RuleBroken(AssertionError):
    """Raised if the programs violated a rule that holds in every world (simulated run), such as one outcome per transaction."""


class PromisesBroken(AssertionError):
    """Raised by a test that has found violated guarantees. The report contains all of them, each with its time."""

    def __init__(self, broken: Sequence[FoundBroken]) -> None:
        """Creates an error for one violation or more."""
        super().__init__(str(broken[0]))
        self.broken = tuple(broken)


class NeverSettled(AssertionError):
    """Raised if the simulated run did not become idle after its faults had ended. The message lists the unfinished work."""


class WorldFailed(AssertionError):
    """Raised if the test failed in a simulated run.

    The message contains the seed, the shrunk plan and the last events of the run, and a call that replays it.
    """
