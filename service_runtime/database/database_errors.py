"""The errors of a service's database. Either nothing was written, or the outcome is unknown.

Does not import a database library.
"""


class DatabaseFailure(Exception):
    """Base class of the failures. `__cause__` is the database's own error."""


class DatabaseUnavailable(DatabaseFailure):
    """Raised if the database refused a statement or did not respond. Nothing was written."""


class DatabaseRefusal(DatabaseUnavailable):
    """The database refused a row (`service_runtime.database.constraints.is_refusal`). Nothing was written."""


class OutcomeUnknown(DatabaseFailure):
    """The database commit failed, so the rows may or may not be stored."""
