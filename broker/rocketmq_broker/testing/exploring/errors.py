"""Defines the errors that an exploration raises."""


class UnusableTest(TypeError):
    """The test cannot be explored as it is written. The message describes how to change it."""


class ProgramFailed(AssertionError):
    """A program ended with an error that no fault explains. `__cause__` is that error."""


class RuleBroken(AssertionError):
    """The programs violated a rule of all worlds, such as that a transaction has one outcome."""


class NeverSettled(AssertionError):
    """The world did not become idle after its faults had ended. The message lists the unfinished work."""


class WorldFailed(AssertionError):
    """The test failed in a world. The message has the seed, the shrunk plan, the last events and the call that repeats it."""
