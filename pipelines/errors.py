"""The errors of the pipelines. Each means that the run could not decide whether orders and credits agree."""

from typing import Final

from rocketmq_commitlog.errors import UnreadableStore


class PipelineError(Exception):
    """Base class of this package's errors. The text is one line for the user, without passwords."""


class UnusableDatabaseUrl(PipelineError):
    """A database URL is invalid, or there is no driver for its database."""


class UnreadableDatabase(PipelineError):
    """A database does not respond, refuses the user, or lacks a table or a column."""


class UnwritableOutput(PipelineError):
    """The output cannot be written."""


class BreaksUnusable(PipelineError):
    """The table of breaks cannot be used, or has no break with this number."""


class PlanUnusable(PipelineError):
    """A repair plan cannot be read, written or applied."""


class UnreadableAudit(PipelineError):
    """An audit file of repairs cannot be read."""


class StateUnusable(PipelineError):
    """The state of an earlier run cannot be used: it is locked or belongs to other sources, or a source lost rows."""


class EngineUnfit(PipelineError):
    """The chosen engine cannot reconcile these sources, because they are too large or of an unsupported kind."""


class SparkUnavailable(PipelineError):
    """Spark cannot be started, for example because Java is missing."""


class SparkFailed(PipelineError):
    """Spark failed after its start, for example because an executor was lost or the output could not be written."""


COULD_NOT_TELL: Final = (PipelineError, UnreadableStore)
"""The errors that end a run, or one round of `watch`, with a one-line message."""
