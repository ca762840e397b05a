"""Defines the errors that an exploration raises."""


class UnusableTest(TypeError):
    """The test cannot be explored as it is written. The message describes how to change it."""


class ProgramFailed(AssertionError):
    """A program ended with an error that no fault explains. `__cause__` is that error."""


class RuleBroken(AssertionError):
    """The programs violated a rule that holds in every world (simulated run): for example, each transaction has one outcome."""


class NeverSettled(AssertionError):
    """The simulated run did not become idle after its faults had ended. The message lists the unfinished work."""


class WorldFailed(AssertionError):
    """The test failed in a simulated run.

    The message contains the seed, the shrunk plan and the last events of the run, and a call that replays it.
    """
