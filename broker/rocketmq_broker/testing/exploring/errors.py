"""The errors of an exploration."""


class UnusableTest(TypeError):
    """The test is written in a way that cannot be explored. The text describes how to write it."""


class ProgramFailed(AssertionError):
    """A program ended with an error that no fault explains. `__cause__` is that error."""


class RuleBroken(AssertionError):
    """The programs violated a rule of all worlds, such as that a transaction has one outcome."""


class NeverSettled(AssertionError):
    """The world did not become idle after the faults had ended. The text lists the unfinished work."""


class WorldFailed(AssertionError):
    """The test failed in a world. The text has the seed, the shrunk plan, the last events and the call that repeats it."""
