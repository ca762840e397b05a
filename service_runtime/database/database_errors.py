"""How work with a service's database fails: nothing was written, or nobody knows. Named without any library of databases."""


class DatabaseFailure(Exception):
    """Base of both. `__cause__` is the error of the database itself."""


class DatabaseUnavailable(DatabaseFailure):
    """The database refused a statement or did not answer. Nothing was written."""


class DatabaseRefusal(DatabaseUnavailable):
    """The database refused a row (`service_runtime.database.constraints.is_refusal`). Nothing was written."""


class OutcomeUnknown(DatabaseFailure):
    """The database commit itself failed: the database holds what was written, or it does not."""
