"""Why a pipeline could not tell whether the books agree."""

from typing import Final

from rocketmq_commitlog.errors import UnreadableStore


class PipelineError(Exception):
    """Base of the errors of this package; its text is one line for the person at the screen, without passwords."""


class UnusableDatabaseUrl(PipelineError):
    """A database URL that cannot be understood, or names a database that no driver is here for."""


class UnreadableDatabase(PipelineError):
    """A database that does not answer, refuses the user, or lacks a table or column."""


class UnwritableOutput(PipelineError):
    """The findings cannot be written where they shall go."""


class BreaksUnusable(PipelineError):
    """The table of breaks cannot be used, or has no break with that number."""


class PlanUnusable(PipelineError):
    """A plan of repair that cannot be read, written or carried out."""


class StateUnusable(PipelineError):
    """What an earlier run left cannot be used: another run has it, it is about other books, or a source lost what was read."""


class SparkUnavailable(PipelineError):
    """No Java to run Spark with, or a Spark that does not start."""


class SparkFailed(PipelineError):
    """Spark started and then failed: an executor was lost, a database went away, the output cannot be written."""


COULD_NOT_TELL: Final = (PipelineError, UnreadableStore)
"""What ends a run, or a turn of a watch, with one line for the person at the screen."""
