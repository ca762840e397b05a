"""The failures of work with a service's database: nothing was written, or the outcome is unknown. Needs no database library."""


class DatabaseFailure(Exception):
    """Base of the failures. `__cause__` is the error of the database itself."""


class DatabaseUnavailable(DatabaseFailure):
    """The database refused a statement or did not answer. Nothing was written."""


class DatabaseRefusal(DatabaseUnavailable):
    """The database refused a row (`service_runtime.database.constraints.is_refusal`). Nothing was written."""


class OutcomeUnknown(DatabaseFailure):
    """The database commit failed: the database may or may not hold the rows."""
