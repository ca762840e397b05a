"""The reasons why a pipeline cannot tell whether the books agree."""

from typing import Final

from rocketmq_commitlog.errors import UnreadableStore


class PipelineError(Exception):
    """Base of the errors of this package; the text is one line for the user, without passwords."""


class UnusableDatabaseUrl(PipelineError):
    """A database URL that is invalid, or names a database without a driver here."""


class UnreadableDatabase(PipelineError):
    """A database that does not answer, refuses the user, or lacks a table or column."""


class UnwritableOutput(PipelineError):
    """The findings cannot be written to their place."""


class BreaksUnusable(PipelineError):
    """The table of breaks cannot be used, or has no break with that number."""


class PlanUnusable(PipelineError):
    """A plan of repair that cannot be read, written or carried out."""


class UnreadableAudit(PipelineError):
    """A file that cannot be read as the audit of repairs."""


class StateUnusable(PipelineError):
    """The state of an earlier run cannot be used: another run has it, its books differ, or a source lost rows that were read."""


class EngineUnfit(PipelineError):
    """The chosen engine cannot judge these books: they are too large for it, or of a kind that it does not read."""


class SparkUnavailable(PipelineError):
    """Java is missing, or Spark does not start."""


class SparkFailed(PipelineError):
    """Spark failed after its start: an executor was lost, a database went away, the output cannot be written."""


COULD_NOT_TELL: Final = (PipelineError, UnreadableStore)
"""The errors that end a run, or a turn of a watch, with one line on the screen."""
