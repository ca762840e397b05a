"""Defines the errors that an exploration raises."""


class UnusableTest(TypeError):
    """Raised if the test cannot be explored as written. The message describes how to change it."""


class ProgramFailed(AssertionError):
    """Raised if a program ended with an error that no fault explains. `__cause__` is the program's error."""


class RuleBroken(AssertionError):
    """Raised if the programs violated a rule that holds in every world (simulated run), such as one outcome per transaction."""


class NeverSettled(AssertionError):
    """Raised if the simulated run did not become idle after its faults had ended. The message lists the unfinished work."""


class WorldFailed(AssertionError):
    """Raised if the test failed in a simulated run.

    The message contains the seed, the shrunk plan and the last events of the run, and a call that replays it.
    """
