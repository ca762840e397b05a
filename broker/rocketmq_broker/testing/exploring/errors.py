"""What an exploration raises."""


class UnusableTest(TypeError):
    """The test cannot be explored as it is written; the text says how to write it. No seed is to blame."""


class ProgramFailed(AssertionError):
    """A program ended by an error that no fault explains; the cause is that error."""


class RuleBroken(AssertionError):
    """The programs broke a rule that holds in each world, such as one outcome for a transaction."""


class NeverSettled(AssertionError):
    """The faults are over, and the world does not come to rest; the text says what it waits for."""


class WorldFailed(AssertionError):
    """A world failed. The text has its seed, its shrunk plan, its last happenings and the way to play it again."""
